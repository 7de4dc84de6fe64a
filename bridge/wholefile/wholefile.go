// Package wholefile reads whole files that come from outside, unless they are too long to be what they should be: without a
// bound a file of terabytes, which a file system makes in an instant, ends the program.
package wholefile

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Read reads a file of at most limit bytes. It may be a pipe, which is read to its end.
func Read(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return read(file, limit)
}

// ReadRegular is Read for what was found in a folder: pipes and devices, which may never end, are refused.
func ReadRegular(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is no regular file (%v)", info.Mode().Type())}
	}
	return read(file, limit)
}

func read(file *os.File, limit int64) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() && info.Size() > limit {
		return nil, tooLong(file.Name(), fmt.Sprintf("it has %d bytes", info.Size()), limit)
	}
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit { // a pipe, or it grew
		return nil, tooLong(file.Name(), "it has more", limit)
	}
	return data, err
}

func tooLong(path, what string, limit int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%s; at most %d bytes are read", what, limit)}
}
