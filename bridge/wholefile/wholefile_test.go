package wholefile_test

import (
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
