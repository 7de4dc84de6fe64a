package host

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	socketPrefix = "samebits-sockets-"
	// longestBase leaves room for our folder, go-plugin's and the socket in the 107 bytes that a socket's path may have.
	longestBase = 40
	lockName    = "lock"
)

// socketDir is a folder for one plugin's socket. It exists until the first call went through; the connection
// outlives it. Its lock tells a later host whether its owner lives.
type socketDir struct {
	path string
	lock *os.File
}

func socketBase() string {
	if base := os.TempDir(); len(base) <= longestBase {
		return base
	}
	return "/tmp"
}

func newSocketDir() (*socketDir, error) {
	base := socketBase()
	sweep(base, time.Minute)
	path, err := os.MkdirTemp(base, socketPrefix) // 0700
	if err != nil {
		return nil, fmt.Errorf("folder for the plugin's socket: %w", err)
	}
	d := &socketDir{path: path}
	if err := d.take(); err != nil {
		d.remove()
		return nil, fmt.Errorf("folder for the plugin's socket: %w", err)
	}
	return d, nil
}

// take locks the folder for as long as this process lives.
func (d *socketDir) take() (err error) {
	if d.lock, err = os.OpenFile(filepath.Join(d.path, lockName), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	return unix.Flock(int(d.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
}

// remove deletes the folder. It may be called again.
func (d *socketDir) remove() {
	_ = os.RemoveAll(d.path) // what stays is swept by a later start
	if d.lock != nil {
		_ = d.lock.Close()
		d.lock = nil
	}
}

// sweep deletes the folders of hosts that died between start and first call. Young ones are let be: their owner may
// not have locked them yet.
func sweep(base string, age time.Duration) {
	paths, _ := filepath.Glob(filepath.Join(base, socketPrefix+"*")) // the pattern is well formed
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < age || !ours(info) || locked(path) {
			continue
		}
		_ = os.RemoveAll(path)
	}
}

func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

func locked(path string) bool {
	file, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}
