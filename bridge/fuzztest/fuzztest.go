// Package fuzztest is what fuzz targets check of decoders beside that they do not crash.
package fuzztest

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/metrics"
	"testing"
	"unicode"
	"unicode/utf8"

	"samebits/bridge/diag"
)

var reason = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// Refused checks that an error is one for people that names a place in what was read.
func Refused(t testing.TB, err error) {
	t.Helper()
	for _, p := range Said(t, err) {
		if p.Path == "" && p.Reason != "MORE_PROBLEMS" {
			t.Errorf("%s names no place: %s", p.Reason, p.Summary)
		}
	}
}

// Said checks that an error is one for people: problems with a reason id, and a text that does a terminal no harm and does not
// grow with the input.
func Said(t testing.TB, err error) diag.Problems {
	t.Helper()
	if err == nil {
		return nil
	}
	problems, ok := diag.Of(err)
	if !ok || len(problems) == 0 {
		t.Fatalf("error without problems: %v", err)
	}
	if len(problems) > diag.Limit+1 {
		t.Errorf("%d problems", len(problems))
	}
	for _, p := range problems {
		if !reason.MatchString(p.Reason) {
			t.Errorf("%q is no reason id", p.Reason)
		}
		for _, text := range []string{p.Path, p.Summary, p.Detail} {
			if len(text) > 8<<10 {
				t.Errorf("%s says %d bytes", p.Reason, len(text))
			}
			if !Readable(text) {
				t.Errorf("%s is no text for people: %q", p.Reason, text)
			}
		}
	}
	return problems
}

// Readable reports whether a text can stand in a message.
func Readable(text string) bool {
	for _, c := range text {
		if !unicode.IsPrint(c) && c != '\n' && c != '\t' {
			return false
		}
	}
	return utf8.ValidString(text)
}

// Bounded runs f, which reads an input of n bytes, and checks that it took no more memory than fixed bytes and each bytes for
// every byte of input.
func Bounded(t testing.TB, n, fixed, each int, f func()) {
	t.Helper()
	before := allocated()
	f()
	if used, most := allocated()-before, uint64(fixed+each*n); used > most {
		t.Errorf("%d bytes of input took %d bytes of memory, more than %d", n, used, most)
	}
}

// allocated is the number of bytes ever taken. Unlike runtime.ReadMemStats it does not stop the world.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Seeds gives the contents of real files to begin with, those of at most so many bytes. Patterns are paths from the test's folder.
func Seeds(f *testing.F, most int64, patterns ...string) [][]byte {
	f.Helper()
	var all [][]byte
	for _, pattern := range patterns {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		found := false
		for _, path := range paths {
			info, err := os.Stat(path)
			if err != nil {
				f.Fatal(err)
			}
			if info.Size() > most {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			all, found = append(all, data), true
		}
		if !found {
			f.Fatalf("%s: there is no such file of at most %d bytes", pattern, most)
		}
	}
	return all
}
