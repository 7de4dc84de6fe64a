package host

import (
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// guard starts a process that ends this one's group when this one is killed: a compiler below it would else go on for
// seconds, for a plugin that dies with its host can end nobody. It does nothing where the group is not our own.
func guard() (release func(), err error) {
	if unix.Getpgrp() != os.Getpid() || os.Getenv(pluginVariable) == "" {
		return func() {}, nil
	}
	cmd := exec.Command("/bin/sh", "-c", "read -r _ || kill -KILL 0")
	end, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("host: guard of the compiler: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("host: guard of the compiler: %w", err)
	}
	return func() {
		_, _ = end.Write([]byte("done\n")) // it is killed by nobody else than who kills us, too
		_ = cmd.Wait()
	}, nil
}

// pluginVariable is set in plugins, each of which leads a group; other programs may share theirs.
const pluginVariable = "SAMEBITS_PLUGIN"
