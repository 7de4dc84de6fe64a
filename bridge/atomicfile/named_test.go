package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// A file that could not be put on disk is an error, and the older one stays.
func TestSyncFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.json")
	if err := WriteBytes(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := write(path, func(w io.Writer) error { _, err := w.Write([]byte("new")); return err }, func(*os.File) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("error is %v", err)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("file holds %q", got)
	}
}

// Where a file system has no files without a name, one lies beside its place until it is whole.
func TestNamedFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "result.json")
	named := func() *file {
		t.Helper()
		f, err := os.CreateTemp(dir, ".result.json.*")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("text"); err != nil {
			t.Fatal(err)
		}
		return &file{f, f.Name()}
	}
	for range 2 {
		if err := named().keep(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := named().drop(); err != nil {
		t.Error(err)
	}
	closed := named() // as one that could not be renamed
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := closed.drop(); err != nil {
		t.Error(err)
	}
	if err := closed.drop(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what cannot be taken away: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	if got, _ := os.ReadFile(path); string(got) != "text" {
		t.Errorf("file holds %q", got)
	}
}
