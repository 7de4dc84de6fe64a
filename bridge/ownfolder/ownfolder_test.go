package ownfolder

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSweep(t *testing.T) {
	const prefix = "samebits-sockets-"
	base := t.TempDir()
	old := time.Now().Add(-time.Hour)
	folder := func(name string, age time.Time, files ...string) string {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Join(path, "plugin-dir1"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(path, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chtimes(path, age, age); err != nil {
			t.Fatal(err)
		}
		return path
	}
	dead, fresh := folder(prefix+"dead", old), folder(prefix+"fresh", time.Now(), lockName+".new")
	killed := folder(prefix+"killed", time.Now(), lockName)
	foreign := folder("somebody-elses", old)
	link := filepath.Join(base, prefix+"link")
	if err := os.Symlink(foreign, link); err != nil {
		t.Fatal(err)
	}
	live, err := New(base, prefix)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Remove()
	if err := os.Chtimes(live.Path, old, old); err != nil {
		t.Fatal(err)
	}

	Sweep(base, prefix)
	for path, stays := range map[string]bool{dead: false, fresh: true, killed: false, foreign: true, link: true, live.Path: true} {
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s: stays %v, want %v", filepath.Base(path), err == nil, stays)
		}
	}
	live.Remove()
	if _, err := os.Lstat(live.Path); err == nil {
		t.Error("a removed folder is there")
	}
	live.Remove()
}

func TestNowhere(t *testing.T) {
	if _, err := New(filepath.Join(t.TempDir(), "none"), "x"); err == nil {
		t.Error("a folder in none")
	}
}
