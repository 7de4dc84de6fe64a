package wholefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"samebits/bridge/wholefile"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, content := range map[string]string{"short": "1234", "long": "12345", "empty": ""} {
		if err := os.WriteFile(at(name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, wrong := range map[string]error{
		"huge": makeHuge(at("huge")), "pipe": unix.Mkfifo(at("pipe"), 0o600), "link": os.Symlink(at("short"), at("link")),
	} {
		if wrong != nil {
			t.Fatal(name, wrong)
		}
	}
	for _, c := range []struct{ file, want, refused string }{
		{file: "short", want: "1234"},
		{file: "empty"},
		{file: "link", want: "1234"},
		{file: "long", refused: "it has 5 bytes; at most 4 bytes are read"},
		{file: "huge", refused: "at most 4 bytes are read"},
		{file: "pipe", refused: "it is no regular file"},
		{file: ".", refused: "it is no regular file"},
		{file: "missing", refused: "no such file"},
	} {
		t.Run(c.file, func(t *testing.T) {
			data, err := wholefile.ReadRegular(at(c.file), 4)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || !strings.Contains(err.Error(), at(c.file)) {
					t.Errorf("%v instead of %q, with the path", err, c.refused)
				}
			} else if err != nil || string(data) != c.want {
				t.Errorf("%q, %v instead of %q", data, err, c.want)
			}
		})
	}
}

func TestReadPipe(t *testing.T) {
	for content, want := range map[string]string{"1234": "1234", "12345": ""} {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		go func() { _ = os.WriteFile(path, []byte(content), 0o600) }()
		if data, err := wholefile.Read(path, 4); string(data) != want || (err == nil) != (want != "") {
			t.Errorf("of %q: %q, %v", content, data, err)
		}
	}
}

// makeHuge makes a file that nobody has the memory for, and that takes no room.
func makeHuge(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Truncate(1 << 40)
}

// What cannot be read is an error, and no descriptor stays open, whatever happens.
func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := opened(t)
	for name, read := range map[string]func(string, int64) ([]byte, error){"Read": wholefile.Read, "ReadRegular": wholefile.ReadRegular} {
		if _, err := read(file, 4); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := read(file, 3); err == nil {
			t.Errorf("%s: too long a file", name)
		}
		if _, err := read(dir, 1<<20); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s of a folder: %v", name, err)
		}
		if _, err := read(filepath.Join(dir, "missing"), 4); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of no file: %v", name, err)
		}
	}
	if after := opened(t); after != before {
		t.Errorf("%d descriptors instead of %d", after, before)
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
