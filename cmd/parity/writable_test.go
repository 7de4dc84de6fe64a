package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A place where nothing can be written is refused before any process starts, and all of them at once.
func TestPlacesAreLookedAtFirst(t *testing.T) {
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "file"), filepath.Join(dir, "missing", "x")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		says []string
	}{
		{"verify fake --output " + file, []string{"--output " + file + ": the folder cannot be made: not a directory"}},
		{"verify fake --keep /proc/x", []string{"--keep /proc/x: the folder cannot be made"}},
		{"verify fake --html " + dir, []string{"--html " + dir + ": this is a folder"}},
		{"verify fake --junit " + missing + " --sarif " + missing + " --matrix " + missing + ".md", []string{"--junit " + missing + ": there is no folder " + filepath.Dir(missing), "--sarif", "--matrix"}},
		{"verify fake --jsonl " + missing + " --calls " + file + "/x", []string{"--jsonl " + missing, "--calls " + file + "/x: there is no folder " + file}},
		{"selftest --output " + missing, []string{"--output " + missing + ": there is no folder"}},
		{"bench fake --output " + file, []string{"--output " + file}},
		{"record fake -o " + file, []string{"-o " + file + ": " + file + " is no folder"}},
		{"bisect fake -o " + file + "/x", []string{"is no folder"}},
		{"reduce fake -o " + file, []string{"is no folder"}},
	} {
		got := parity(t, &fakes{}, strings.Fields(c.args)...)
		if got.status != 2 || got.fakes.Processes != 0 {
			t.Errorf("%s: status %d, %d processes", c.args, got.status, got.fakes.Processes)
		}
		for _, says := range c.says {
			if !strings.Contains(got.stderr, says) {
				t.Errorf("%s: stderr lacks %q: %s", c.args, says, got.stderr)
			}
		}
	}
	if names, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(names) != 1 {
		t.Errorf("%v is left behind, %v", names, err)
	}
	if os.Geteuid() == 0 {
		return // may write everywhere
	}
	closed := filepath.Join(dir, "closed")
	if err := os.Mkdir(closed, 0o555); err != nil {
		t.Fatal(err)
	}
	got := parity(t, &fakes{}, "record", "fake", "-o", filepath.Join(closed, "new", "folder"))
	if got.status != 2 || !strings.Contains(got.stderr, "nothing can be written to the folder "+closed+": permission denied") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
}

// What names nothing is not a table or a page of nothing.
func TestNoResults(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"matrix", dir}, {"report", dir}} {
		got := parity(t, &fakes{}, args...)
		if got.status != 2 || got.stdout != "" || !strings.Contains(got.stderr, "there is no result in "+dir) {
			t.Errorf("%v: status %d: %s%s", args, got.status, got.stdout, got.stderr)
		}
	}
	if got := parity(t, &fakes{}, "certificate", "verify", dir); got.status != 2 || !strings.Contains(got.stderr, dir) {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
}
