package host

import (
	"fmt"
	"os"

	"samebits/bridge/ownfolder"
)

// longestBase leaves room for our folder, go-plugin's and the socket in the 107 bytes that a socket's path may have.
const longestBase = 40

func socketBase() string {
	if base := os.TempDir(); len(base) <= longestBase {
		return base
	}
	return "/tmp"
}

// newSocketDir makes a folder for one plugin's socket. It exists until the first call went through; the connection
// outlives it.
func newSocketDir() (*ownfolder.Folder, error) {
	d, err := ownfolder.New(socketBase(), "sockets")
	if err != nil {
		return nil, fmt.Errorf("folder for the plugin's socket: %w", err)
	}
	return d, nil
}
