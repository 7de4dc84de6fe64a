package kernels

import (
	"slices"
	"strings"
	"testing"
)

func TestSource(t *testing.T) {
	for _, file := range Files() {
		text, headers, err := Source(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, `#include "prelude.cuh"`) {
			t.Errorf("%s.cu does not include prelude.cuh", file)
		}
		if headers["prelude.cuh"] == "" {
			t.Errorf("%s: no prelude.cuh among the headers", file)
		}
	}
	if !slices.IsSorted(Files()) {
		t.Errorf("files are not sorted: %v", Files())
	}
}

func TestSourceUnknown(t *testing.T) {
	_, _, err := Source("no_such_file")
	if err == nil || !strings.Contains(err.Error(), "no_such_file") {
		t.Fatalf("wanted an error that names the file, got %v", err)
	}
}
