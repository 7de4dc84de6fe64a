// Command b3sum prints the BLAKE3 digests of files, as the program of that name does. The build of the Python package calls it.
package main

import (
	"fmt"
	"os"

	"samebits/bridge/digest"
)

func main() {
	for _, path := range os.Args[1:] {
		data, err := os.ReadFile(path)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%s  %s\n", digest.Bytes(data), path)
	}
}
