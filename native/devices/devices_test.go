package devices

import (
	"slices"
	"strings"
	"testing"

	"samebits/native/cuda"
)

// Every device that opens is named by Usable, which opens no GPU.
func TestUsableNamesWhatOpens(t *testing.T) {
	usable := Usable()
	for _, found := range List() {
		if found.Problem == "" && !slices.Contains(usable, found.Name) {
			t.Errorf("%s opens, usable are %v", found.Name, usable)
		}
	}
}

func TestUsableWithoutLibraries(t *testing.T) {
	t.Setenv(cuda.FoldersVariable, t.TempDir())
	for _, name := range Usable() {
		if strings.HasPrefix(name, "cuda:") {
			t.Errorf("%s is named without any library", name)
		}
	}
}

func TestOptionsForCUDA(t *testing.T) {
	var lines []string
	o := Options{TorchFolders: []string{"/torch"}, Log: func(line string) { lines = append(lines, line) }}
	t.Setenv(cuda.FoldersVariable, "")
	if got := o.forCUDA(); !slices.Equal(got.Folders, o.TorchFolders) {
		t.Errorf("folders %v", got.Folders)
	}
	t.Setenv(cuda.FoldersVariable, "/mine")
	got := o.forCUDA()
	if got.Folders != nil {
		t.Errorf("folders %v, the variable comes first", got.Folders)
	}
	got.Log("damaged")
	if !slices.Equal(lines, []string{"damaged"}) || (Options{}).forCUDA().Log == nil {
		t.Errorf("log %q", lines)
	}
}
