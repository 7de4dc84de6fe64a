package host

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// program is how a plugin's process comes into being, and what is left of it in the end.
type program interface {
	name() string
	environ(env []string)
	// start gives the number of the process, which leads a group of its own.
	start(stdout, stderr *os.File) (pid int, err error)
	// reap takes a process away that has ended.
	reap() Exit
}

// executed is a program that is started from its file.
type executed struct{ cmd *exec.Cmd }

func (e executed) name() string { return e.cmd.Path }

func (e executed) environ(env []string) { e.cmd.Env = env }

// start binds the life of the process to that of this one.
func (e executed) start(stdout, stderr *os.File) (int, error) {
	e.cmd.Stdout, e.cmd.Stderr = stdout, stderr
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := startOnThread(e.cmd); err != nil {
		return 0, err
	}
	return e.cmd.Process.Pid, nil
}

func (e executed) reap() Exit {
	_ = e.cmd.Wait() // the state says more
	status, _ := e.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return exitOf(status)
}

// forked is a process that a zygote forks. It is a child of ours all the same: see Zygote.
type forked struct {
	zygote *Zygote
	env    []string
	files  []inherited
	pid    int
}

func (f *forked) name() string { return f.zygote.process.Name() }

func (f *forked) environ(env []string) { f.env = env }

func (f *forked) start(stdout, stderr *os.File) (pid int, err error) {
	f.pid, err = f.zygote.fork(f.env, f.files, stdout, stderr)
	return f.pid, err
}

func (f *forked) reap() Exit {
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(f.pid, &status, 0, nil); err != unix.EINTR {
			return exitOf(syscall.WaitStatus(status))
		}
	}
}

func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Code: -1, Signal: status.Signal(), Core: status.CoreDump()}
	}
	return Exit{Code: status.ExitStatus()}
}
