package matrix

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"samebits/parity/result"
	"samebits/parity/suite"
)

// Here is what can be known of results before any cell is verified: values of their environment, by key. An empty value is
// not known.
type Here map[string]string

// unlike is what differs between equal machines, and changes no result.
var unlike = []string{"gpu.uuid", "host.threads"}

// Take adds settings of this machine. Where files lie is left out.
func (h Here) Take(settings map[string]string) {
	for key, value := range settings {
		if !slices.Contains(unlike, key) && !strings.HasSuffix(key, ".path") {
			h[key] = strings.TrimSpace(value)
		}
	}
}

// Reuse finds the finished result of a cell, which has its size, task and image size, among those that were kept before. If
// there is one that cannot stand for a new one, why says so.
func Reuse(kept []result.Kept, cell suite.Cell, here Here) (found *result.Kept, why string) {
	for i := range kept {
		r := &kept[i]
		if !sameCell(r.Result, cell) {
			continue
		}
		if why = stale(r.Result, here); why == "" {
			return r, ""
		}
		why = r.File + ": " + why
	}
	return nil, why
}

// sameCell reports whether a result is of a cell. The number of the GPU does not count: its name does.
func sameCell(r result.Result, c suite.Cell) bool {
	want := c.Result()
	gpu, _, _ := strings.Cut(r.Device, ":")
	wanted, _, _ := strings.Cut(want.Device, ":")
	same := r.Family == want.Family && r.Size == want.Size && r.Task == want.Task && r.ImgSize == want.ImgSize &&
		r.Batch == want.Batch && r.Mode == want.Mode && r.Precision == want.Precision && r.Profile == want.Profile &&
		r.Seed == want.Seed && gpu == wanted
	if len(r.Asked) > 0 {
		return false // it says little of the cell
	}
	if !same || !c.Trains() {
		return same
	}
	return r.Training != nil && r.Training.Recipe == c.Training
}

// stale says why a result cannot stand for a new one: it says nothing of its cell, or something else made it.
func stale(r result.Result, here Here) string {
	if !r.Judged() {
		return "it is " + string(r.Verdict)
	}
	for _, key := range slices.Sorted(maps.Keys(here)) {
		want := here[key]
		got, apart := r.Environment["native."+key]
		if !apart {
			got = r.Environment[key]
		}
		switch {
		case want == "" || got == want:
		case strings.HasPrefix(got, want+"+"): // a package of version 2.11.0 may say 2.11.0+cu130 of itself
		case got == "" && strings.HasSuffix(key, "_build"):
			return fmt.Sprintf("it does not say its %s", key)
		case got == "": // a cell that was refused early has not asked everything
		default:
			return fmt.Sprintf("its %s is %s, not %s", key, short(got), short(want))
		}
	}
	return ""
}

// short cuts digests.
func short(value string) string {
	if len(value) == 64 && strings.Trim(value, "0123456789abcdef") == "" {
		return value[:16]
	}
	return value
}
