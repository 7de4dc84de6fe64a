package result_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"samebits/parity/result"
)

// What lies in a folder beside results is named; nobody waits for a pipe, or takes memory for a file without end.
func TestReadFolderWithStrangers(t *testing.T) {
	dir := t.TempDir()
	good := result.Result{Schema: result.Schema, Family: "fake", Mode: "predict", Precision: "fp32", Verdict: result.Exact, Profile: "exact-1"}
	if _, err := good.Keep(dir); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(dir, "huge.json")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil {
		t.Fatal(err)
	}
	kept, err := result.ReadFolder(dir)
	if len(kept) != 1 || err == nil || !strings.Contains(err.Error(), "pipe.json: it is no regular file") ||
		!strings.Contains(err.Error(), "huge.json: it has 1099511627776 bytes") {
		t.Errorf("%d results, %v", len(kept), err)
	}
	if _, err := result.Read(huge); err == nil {
		t.Error("it was read")
	}
}
