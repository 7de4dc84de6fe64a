// Package ownfolder makes temporary folders that go with their process: one whose owner was killed is removed by whoever makes or
// sweeps the next.
package ownfolder

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// lockName is a file in the folder that its owner holds locked.
const lockName = "lock"

// young is how old a folder without a lock must be to count as nobody's: its owner may not have locked it yet.
const young = time.Minute

// Folder is a folder of this process.
type Folder struct {
	Path string
	lock *os.File
}

// prefix begins the names of all such folders; then come what they are for, a word, and digits.
const prefix = "samebits-"

// New sweeps, then makes a folder below base that nobody else may read.
func New(base, purpose string) (*Folder, error) {
	Sweep(base)
	path, err := os.MkdirTemp(base, prefix+purpose+"-") // 0700
	if err != nil {
		return nil, err
	}
	f := &Folder{Path: path}
	if err := f.take(); err != nil {
		f.Remove()
		return nil, err
	}
	return f, nil
}

// take locks the folder for as long as this process lives. The lock gets its name when it is held: one that is not held is a
// dead owner's.
func (f *Folder) take() (err error) {
	name := filepath.Join(f.Path, lockName)
	if f.lock, err = os.OpenFile(name+".new", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := unix.Flock(int(f.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// Remove deletes the folder. It may be called again.
func (f *Folder) Remove() {
	remove(f.Path) // what stays is swept by a later start
	if f.lock != nil {
		_ = f.lock.Close()
		f.lock = nil
	}
}

var form = regexp.MustCompile(`^` + prefix + `[a-z]+-[0-9]+$`)

// Sweep deletes the folders below base whose owners died, whatever they were for.
func Sweep(base string) {
	paths, _ := filepath.Glob(filepath.Join(base, prefix+"*")) // the pattern is well formed
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err == nil && info.IsDir() && form.MatchString(info.Name()) && ours(info) && abandoned(path, time.Since(info.ModTime())) {
			remove(path)
		}
	}
}

// remove deletes the lock last: without it what is in the folder could be somebody else's.
func remove(path string) {
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if e.Name() != lockName {
			_ = os.RemoveAll(filepath.Join(path, e.Name()))
		}
	}
	_ = os.RemoveAll(path)
}

func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}

// abandoned reports whether nobody holds a folder's lock. One without a lock must be old, and have nothing in it that is not ours.
func abandoned(path string, age time.Duration) bool {
	file, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if err != nil {
		entries, err := os.ReadDir(path)
		return err == nil && age >= young && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() != lockName+".new" })
	}
	defer func() { _ = file.Close() }()
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}
