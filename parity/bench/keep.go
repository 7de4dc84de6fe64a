package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"samebits/bridge/atomicfile"
	"samebits/bridge/wholefile"
	"samebits/parity/result"
)

// limit is the most bytes that are read of a report.
const limit = 64 << 20

// Read reads a report.
func Read(path string) (Report, error) {
	data, err := wholefile.Read(path, limit)
	if err != nil {
		return Report{}, err
	}
	return Parse(path, data)
}

// Parse reads a report as Write wrote it. Errors name it by its path.
func Parse(path string, data []byte) (Report, error) {
	var r Report
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s is no report of parity bench: %w", path, err)
	}
	if r.Schema != Schema {
		return r, fmt.Errorf("%s is a report of schema %d; this program knows %d", path, r.Schema, Schema)
	}
	return r, nil
}

// Write writes a report so that a reader sees all of it or the one before.
func (r *Report) Write(path string) error {
	return atomicfile.Write(path, r.Encode)
}

// Encode writes a report as indented JSON.
func (r *Report) Encode(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// volatile are the keys of an environment that say nothing of what was measured.
var volatile = []string{"parity_build"}

// Resume takes the cells of an earlier report in which nothing broke, if it is of the same device, programs and
// settings; otherwise it says what is another. A report that is not there has no cells.
func (r *Report) Resume(path string) (different string, err error) {
	before, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	switch {
	case before.Device != r.Device:
		return "it is of " + before.Device, nil
	case before.Settings != r.Settings:
		return "it was measured with other settings", nil
	case !slices.Equal(before.Arms, r.Arms):
		return "it has other arms", nil
	}
	for _, key := range slices.Sorted(maps.Keys(r.Environment)) {
		old, both := before.Environment[key]
		now := r.Environment[key]
		if !both || old == now || strings.HasPrefix(old, now+"+") || slices.Contains(volatile, key) {
			continue // a package of version 2.11.0 may say 2.11.0+cu130 of itself
		}
		return fmt.Sprintf("%s was %s, now %s", key, old, now), nil
	}
	for _, c := range before.Cells {
		if c.Exit() < result.ExitInfrastructure {
			r.Cells = append(r.Cells, c)
		}
	}
	maps.Copy(r.Environment, before.Environment)
	return "", nil
}

// SetAside renames a report, so that another one can take its place, and gives its new path: bench-1.json, bench-2.json, ….
func SetAside(path string) (string, error) {
	ext := filepath.Ext(path)
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), n, ext)
		switch err := os.Link(path, aside); { // never takes the place of another one
		case err == nil:
			return aside, os.Remove(path)
		case !errors.Is(err, fs.ErrExist):
			return "", err
		}
	}
}

// Has reports whether the report has a cell; a key without size, task or image size stands for what the family has of them.
func (r *Report) Has(k Key) bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool {
		same := c.Key()
		if k.Size == "" {
			same.Size = ""
		}
		if k.Task == "" {
			same.Task = ""
		}
		if k.ImgSize == 0 {
			same.ImgSize = 0
		}
		return same == k
	})
}
