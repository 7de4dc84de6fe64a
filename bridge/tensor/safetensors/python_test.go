package safetensors_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"samebits/bridge/tensor/safetensors"
)

// rewrite has the Python package read a file and write what it read.
const rewrite = `
import sys
from safetensors import safe_open
from safetensors.torch import save_file
with safe_open(sys.argv[1], "pt") as f:
    save_file({k: f.get_tensor(k) for k in f.keys()}, sys.argv[2], f.metadata())
`

// TestPythonPackage exchanges files with the reference implementation. SAMEBITS_PYTHON names the interpreter.
func TestPythonPackage(t *testing.T) {
	python := os.Getenv("SAMEBITS_PYTHON")
	if python == "" {
		t.Skip("SAMEBITS_PYTHON is not set")
	}
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "theirs")
	if err := safetensors.WriteFile(ours, every(), map[string]string{"k": "v"}); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, "-c", rewrite, ours, theirs).CombinedOutput(); err != nil {
		t.Fatalf("python: %v\n%s", err, out)
	}
	want, err := os.ReadFile(ours)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the Python package writes other bytes: %d, ours %d\n%.1000q\n%.1000q", len(got), len(want), got, want)
	}
	f, err := safetensors.Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tensors) != len(every()) || f.Metadata["k"] != "v" {
		t.Errorf("read back %d tensors, metadata %v", len(f.Tensors), f.Metadata)
	}
}
