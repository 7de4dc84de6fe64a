package host

import (
	"os/exec"
	"runtime"
	"sync"
)

// Pdeathsig kills a child when the thread that started it ends, so one thread that never ends starts them all.

type startRequest struct {
	cmd  *exec.Cmd
	done chan<- error
}

var starter = sync.OnceValue(func() chan<- startRequest {
	requests := make(chan startRequest)
	go func() {
		runtime.LockOSThread()
		for r := range requests { // never closed
			r.done <- r.cmd.Start()
		}
	}()
	return requests
})

func startOnThread(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	starter() <- startRequest{cmd, done}
	return <-done
}
