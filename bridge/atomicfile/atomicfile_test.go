package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"samebits/bridge/atomicfile"
)

func TestWriteReplaces(t *testing.T) {
	for name, write := range map[string]func(string, []byte) error{"WriteBytes": atomicfile.WriteBytes, "WriteCache": atomicfile.WriteCache} {
		path := filepath.Join(t.TempDir(), "result.json")
		for _, text := range []string{"old", "new and longer", ""} {
			if err := write(path, []byte(text)); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("%s: read %q, %v; want %q", name, got, err, text)
			}
		}
	}
}

func TestFailureKeepsTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "result.json")
	if err := atomicfile.WriteBytes(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := atomicfile.Write(path, func(w io.Writer) error {
		if _, err := w.Write(make([]byte, 2<<20)); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("file holds %q", got)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("%d files left behind", len(entries))
	}
}

// While a file is written nothing of it has a name, so that a killed process leaves nothing.
func TestNoNameMeanwhile(t *testing.T) {
	dir := t.TempDir()
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		t.Skipf("the file system has no files without a name: %v", err)
	}
	if err := unix.Close(fd); err != nil {
		t.Fatal(err)
	}
	for _, before := range []int{0, 1} {
		err := atomicfile.Write(filepath.Join(dir, "result.json"), func(w io.Writer) error {
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != before {
				t.Errorf("%v, %v", entries, err)
			}
			_, err := w.Write(make([]byte, 2<<20))
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// opened counts this process's descriptors.
func opened(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Others may read what was written, and nobody but the owner may change it. No descriptor stays open, whatever happens.
func TestModeAndDescriptors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "result.json")
	before := opened(t)
	for range 2 { // there is none, and one to replace
		if err := atomicfile.WriteBytes(path, []byte("text")); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != 0o644 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	if err := atomicfile.Write(path, func(io.Writer) error { return io.ErrUnexpectedEOF }); err == nil || !strings.HasPrefix(err.Error(), "write "+path+": ") {
		t.Errorf("error is %v", err)
	}
	if after := opened(t); after != before {
		t.Errorf("%d descriptors instead of %d", after, before)
	}
}

// A folder is not replaced, and nothing is left beside it.
func TestFolderInTheWay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "result.json")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.WriteBytes(path, []byte("text")); err == nil || errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), path) {
		t.Errorf("error is %v", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

// A folder that goes while its file is written is an error.
func TestFolderGoes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	err := atomicfile.Write(filepath.Join(dir, "result.json"), func(io.Writer) error { return os.RemoveAll(dir) })
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

// A file whose end finds no room is an error, and the older one stays.
func TestNoRoom(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.json")
	if err := atomicfile.WriteBytes(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var room unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &room); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 8, Max: room.Max}); err != nil {
		t.Fatal(err)
	}
	err := atomicfile.WriteBytes(path, []byte("new and longer"))
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &room); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EFBIG) {
		t.Errorf("error is %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("file holds %q", got)
	}
}

func TestMissingFolder(t *testing.T) {
	err := atomicfile.WriteBytes(filepath.Join(t.TempDir(), "no", "file"), nil)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}
