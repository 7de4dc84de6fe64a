// Package lint holds tests of the source text itself: what no compiler checks and every reader relies on.
package lint

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayImport is the import table of the design: which folders' code each folder may use. Tests obey it like all other code.
var mayImport = map[string][]string{
	"bridge":             {"bridge"},
	"bridge/python":      {"bridge", "native"},  // opens the engine in the caller's own process
	"bridge/certificate": {"bridge", "goldens"}, // data: the schema, whom everybody trusts, and the certificates themselves
	"native":             {"native", "bridge"},
	"parity":             {"parity", "bridge", "goldens"},
	"cmd":                {"bridge", "parity"},
	"plugins":            {"plugins", "bridge", "native"},
	"goldens":            {},
	"internal":           {},
}

const (
	module = "samebits/"
	wire   = "samebits/bridge/proto/samebitsv1" // stops at the bridge
)

// file is one source file as far as these tests look.
type file struct {
	path, name string // path below the module, name of its package
	imports    []string
}

func sources(t *testing.T) []file {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var files []file
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			hidden := (strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")) && path != root // as Go has it
			if hidden || d.Name() == "testdata" || path == filepath.Join(root, "build") || path == filepath.Join(root, "tools") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f := file{path: filepath.ToSlash(relative), name: parsed.Name.Name}
		for _, i := range parsed.Imports {
			imported, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			f.imports = append(f.imports, imported)
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("only %d source files below %s: looking in the wrong place", len(files), root)
	}
	return files
}

func top(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

// violations says what of a file breaks the table.
func violations(f file) []string {
	var out []string
	folder := top(f.path)
	if second, _, below := strings.Cut(strings.TrimPrefix(f.path, folder+"/"), "/"); below {
		if longer := folder + "/" + second; mayImport[longer] != nil {
			folder = longer
		}
	}
	allowed, known := mayImport[folder]
	if !known {
		return []string{"the folder " + folder + " is not in the import table"}
	}
	for _, i := range f.imports {
		below, ours := strings.CutPrefix(i, module)
		if !ours {
			continue
		}
		if !slices.Contains(allowed, top(below)) {
			out = append(out, folder+" may not import "+i)
		}
		if i == wire && top(f.path) != "bridge" {
			out = append(out, "wire types stop at the bridge; this imports "+i)
		}
	}
	if slices.Contains([]string{"util", "utils", "common", "types", "helpers", "misc"}, strings.TrimSuffix(f.name, "_test")) {
		out = append(out, "a package named "+f.name+" says nothing of what it holds")
	}
	return out
}

func TestImports(t *testing.T) {
	for _, f := range sources(t) {
		for _, v := range violations(f) {
			t.Errorf("%s: %s", f.path, v)
		}
	}
}

// TestViolationsAreSeen keeps the test above from passing because it sees nothing.
func TestViolationsAreSeen(t *testing.T) {
	for _, c := range []struct {
		name string
		file file
		want int
	}{
		{"sound", file{"parity/gate/gate.go", "gate", []string{"fmt", "samebits/bridge/tensor", "samebits/parity/compare"}}, 0},
		{"parity uses native", file{"parity/gate/gate.go", "gate", []string{"samebits/native/plan"}}, 1},
		{"native uses parity", file{"native/plan/plan.go", "plan", []string{"samebits/parity/gate"}}, 1},
		{"Python's bridge uses native", file{"bridge/python/load.go", "samebits", []string{"samebits/native/engine"}}, 0},
		{"Python's bridge uses parity", file{"bridge/python/load.go", "samebits", []string{"samebits/parity/gate"}}, 1},
		{"the wheel uses native", file{"bridge/python/model.go", "samebits", []string{"samebits/native/engine"}}, 0},
		{"the wheel uses parity", file{"bridge/python/model.go", "samebits", []string{"samebits/parity/suite"}}, 1},
		{"bridge uses native", file{"bridge/host/host.go", "host", []string{"samebits/native/plan"}}, 1},
		{"command uses native", file{"cmd/parity/main.go", "main", []string{"samebits/native/plan"}}, 1},
		{"plugin uses parity", file{"plugins/predictor/main.go", "main", []string{"samebits/parity/gate"}}, 1},
		{"wire types in a plugin", file{"plugins/predictor/main.go", "main", []string{wire}}, 1},
		{"new folder", file{"extra/extra.go", "extra", nil}, 1},
		{"empty name", file{"bridge/util/x_test.go", "util_test", nil}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := violations(c.file); len(got) != c.want {
				t.Errorf("violations %q, want %d", got, c.want)
			}
		})
	}
}
