package host

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSweep(t *testing.T) {
	base := t.TempDir()
	t.Setenv("TMPDIR", base)
	old := time.Now().Add(-time.Hour)
	folder := func(name string, age time.Time) string {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Join(path, "plugin-dir1"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, age, age); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dead, young := folder(socketPrefix+"dead", old), folder(socketPrefix+"young", time.Now())
	foreign := folder("somebody-elses", old)
	link := filepath.Join(base, socketPrefix+"link")
	if err := os.Symlink(foreign, link); err != nil {
		t.Fatal(err)
	}

	live := &socketDir{path: folder(socketPrefix+"live", time.Now())}
	if err := live.take(); err != nil {
		t.Fatal(err)
	}
	defer live.remove()
	if err := os.Chtimes(live.path, old, old); err != nil {
		t.Fatal(err)
	}

	sweep(base, time.Minute)
	for path, stays := range map[string]bool{dead: false, young: true, foreign: true, link: true, live.path: true} {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s: stays %v, want %v", filepath.Base(path), err == nil, stays)
		}
	}
	live.remove()
	if _, err := os.Lstat(live.path); err == nil {
		t.Error("a removed folder is there")
	}
}
