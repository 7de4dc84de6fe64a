package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"samebits/bridge/wholefile"
)

// The most bytes that are read of a file: the longest results that there are, of training, have less than 1 MiB.
const (
	limit      = 64 << 20
	linesLimit = 1 << 30
)

// Kept is a result with the name of its file.
type Kept struct {
	Result
	File string // without its folder
}

// ReadFolder reads the results that Keep wrote to a folder, in the order of their names. Files that hold none are left out:
// the error names each of them. A schema.json is no result.
func ReadFolder(dir string) ([]Kept, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	var kept []Kept
	var wrong []error
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || filepath.Ext(name) != ".json" || name == "schema.json" || strings.HasPrefix(name, ".") {
			continue
		}
		path := filepath.Join(dir, name)
		data, err := wholefile.ReadRegular(path, limit)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("results: %w", err))
			continue
		}
		r, err := Parse(path, data)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		kept = append(kept, Kept{r, name})
	}
	return kept, errors.Join(wrong...)
}

// ReadLines reads a file of JSON lines, a result each, in their order. Lines that are none are left out: the error names each
// of them.
func ReadLines(path string) ([]Result, error) {
	data, err := wholefile.Read(path, linesLimit)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	var results []Result
	var wrong []error
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		r, err := Parse(fmt.Sprintf("%s, line %d,", path, number), line)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		results = append(results, r)
	}
	return results, errors.Join(wrong...)
}

// Read reads one result and looks whether it is whole.
func Read(path string) (Result, error) {
	data, err := wholefile.Read(path, limit)
	if err != nil {
		return Result{}, fmt.Errorf("results: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a result as Keep wrote it. Errors name it by its path.
func Parse(path string, data []byte) (Result, error) {
	var r Result
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s is no result: %w", path, err)
	}
	switch known := []Verdict{Exact, Consistent, Passed, EagerNoise, Differs, Refused, Broken}; {
	case r.Schema != Schema:
		return r, fmt.Errorf("%s is a result of schema %d; this program knows %d", path, r.Schema, Schema)
	case !slices.Contains(known, r.Verdict):
		return r, fmt.Errorf("%s is no result: its verdict is %.64q", path, r.Verdict)
	case r.Family == "" || r.Precision == "" || r.Mode == "":
		return r, fmt.Errorf("%s is no result: it does not say of what cell", path)
	case strings.ContainsFunc(r.Name(), func(c rune) bool { return c == '/' || !unicode.IsPrint(c) }):
		return r, fmt.Errorf("%s is no result: its cell's names cannot stand in a file's", path)
	}
	return r, nil
}
