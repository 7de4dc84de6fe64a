package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Where results cannot be written is said before anything starts: better now than when all is done.

// makeFolder makes the folder that a flag names; "" names none.
func makeFolder(flag, dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return usagef("%s %s: the folder cannot be made: %w", flag, dir, cause(err))
	}
	return canWrite(flag, dir, dir)
}

// checkFile looks at the place of the file that a flag names; "" names none.
func checkFile(flag, path string) error {
	switch {
	case path == "":
		return nil
	case isFolder(path):
		return usagef("%s %s: this is a folder; name a file", flag, path)
	case !isFolder(filepath.Dir(path)):
		return usagef("%s %s: there is no folder %s", flag, path, filepath.Dir(path))
	}
	return canWrite(flag, path, filepath.Dir(path))
}

// checkNew looks at the place of a folder that is made at the end alone, if there is something to write.
func checkNew(flag, dir string) error {
	there := filepath.Clean(dir)
	for _, err := os.Lstat(there); errors.Is(err, fs.ErrNotExist) && there != filepath.Dir(there); _, err = os.Lstat(there) {
		there = filepath.Dir(there)
	}
	if !isFolder(there) {
		return usagef("%s %s: %s is no folder", flag, dir, there)
	}
	return canWrite(flag, dir, there)
}

func canWrite(flag, path, folder string) error {
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		return usagef("%s %s: nothing can be written to the folder %s: %w", flag, path, folder, err)
	}
	return nil
}

// cause is what the system says, without the path that is said already.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
