package ownfolder

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSweep(t *testing.T) {
	base := t.TempDir()
	old := time.Now().Add(-time.Hour)
	stays := map[string]bool{}
	folder := func(name string, age time.Time, stay bool, files ...string) string {
		path := filepath.Join(base, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
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
		stays[path] = stay
		return path
	}
	folder(prefix+"sockets-1", old, false)
	folder(prefix+"sockets-2", old, false, lockName+".new")
	folder(prefix+"sockets-3", time.Now(), true, lockName+".new")
	folder(prefix+"cold-4", time.Now(), false, lockName, "kernel.so")
	folder(prefix+"sockets-5", old, true, "somebody's")
	folder(prefix+"results-2026-1", old, true, lockName)
	foreign := folder("somebody-elses", old, true)
	link := filepath.Join(base, prefix+"sockets-6")
	if err := os.Symlink(foreign, link); err != nil {
		t.Fatal(err)
	}
	stays[link] = true
	live, err := New(base, "sockets")
	if err != nil {
		t.Fatal(err)
	}
	defer live.Remove()
	stays[live.Path] = true
	if err := os.Chtimes(live.Path, old, old); err != nil {
		t.Fatal(err)
	}

	Sweep(base)
	for path, stay := range stays {
		if _, err := os.Lstat(path); (err == nil) != stay {
			t.Errorf("%s: stays %v, want %v", filepath.Base(path), err == nil, stay)
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
