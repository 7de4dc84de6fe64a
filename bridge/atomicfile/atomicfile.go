// Package atomicfile writes files that are there whole or not at all, whatever interrupts the writing.
package atomicfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Write makes the file at path from what fill writes, replacing an older one only when all of it is on disk. If fill
// fails the older file stays as it was. A process that is killed leaves nothing else behind, where the file system has
// files without a name.
func Write(path string, fill func(io.Writer) error) error { return write(path, fill, (*os.File).Sync) }

// WriteCache is Write for content at hand that can be made again and has a checksum: it does not wait for the disk.
func WriteCache(path string, data []byte) error {
	return write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}, func(*os.File) error { return nil })
}

func write(path string, fill func(io.Writer) error, sync func(*os.File) error) (err error) {
	f, err := create(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, errors.Join(err, f.drop()))
		}
	}()
	w := bufio.NewWriterSize(f, 64<<10)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := sync(f.File); err != nil {
		return err
	}
	return f.keep(path)
}

// file is one that is not at its place yet.
type file struct {
	*os.File
	named string // where it lies meanwhile; empty: nowhere
}

// create makes a file without a name in the folder of path, or else one beside it.
func create(path string) (*file, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return &file{File: os.NewFile(uintptr(fd), path)}, nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return nil, err
	}
	return &file{f, f.Name()}, nil
}

// keep brings the file to its place. One that lies there already can only be replaced by one with a name.
func (f *file) keep(path string) error {
	if f.named == "" {
		err := f.link(path)
		if err == nil {
			return f.Close()
		}
		name := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+strconv.FormatUint(rand.Uint64(), 36))
		if !errors.Is(err, fs.ErrExist) || f.link(name) != nil {
			return err
		}
		f.named = name
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.named, path)
}

// link gives the file a name. By its number under /proc anybody may do that.
func (f *file) link(name string) error {
	err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: f.Name(), New: name, Err: err}
	}
	return nil
}

// drop takes the file away.
func (f *file) drop() error {
	err := f.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	if f.named == "" {
		return err
	}
	return errors.Join(err, os.Remove(f.named))
}

// WriteBytes is Write for content at hand.
func WriteBytes(path string, data []byte) error {
	return Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
