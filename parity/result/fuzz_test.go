package result_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"samebits/bridge/fuzztest"
	"samebits/parity/result"
)

// kept are results that were measured.
var kept = []string{"../../goldens/results/classify-resnet-18-*.json", "../../goldens/results/detect-dfine-n-*.json", "../../goldens/results/detect-rtmdet-t-*.json"}

// parse checks what holds of any bytes.
func parse(t *testing.T, data []byte) {
	t.Helper()
	var r result.Result
	var err error
	fuzztest.Bounded(t, len(data), 1<<20, 400, func() { r, err = result.Parse("results/x.json", data) })
	if err != nil {
		if text := err.Error(); !strings.HasPrefix(text, "results/x.json is ") || !fuzztest.Readable(text) || len(text) > 8<<10 {
			t.Errorf("it does not say what is wrong where: %q", text)
		}
		return
	}
	if name := r.Name(); filepath.Base(name) != name || !strings.HasSuffix(name, ".json") {
		t.Errorf("it would be kept as %q", name)
	}
	_ = r.Verdict.Exit()
	first := encoded(t, r)
	again, err := result.Parse("again", first)
	if err != nil {
		t.Fatalf("written and read again it is refused: %v", err)
	}
	if second := encoded(t, again); !bytes.Equal(second, first) {
		t.Errorf("it has two spellings:\n%s\n%s", first, second)
	}
}

func encoded(t *testing.T, r result.Result) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzParse(f *testing.F) {
	for _, data := range fuzztest.Seeds(f, 32<<10, kept...) {
		f.Add(data)
	}
	f.Add([]byte(`{"schema":1,"verdict":"exact","family":"a","precision":"fp32","mode":"predict"}`))
	f.Fuzz(parse)
}

// FuzzEdit puts other values into a result, which other bytes would mostly not leave JSON.
func FuzzEdit(f *testing.F) {
	seeds := fuzztest.Seeds(f, 32<<10, kept...)
	for i := range seeds {
		f.Add(uint8(i), fuzztest.Edit(uint16(7*i), 5, 'x'))
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		parse(t, fuzztest.EditJSON(t, seeds[int(which)%len(seeds)], edits))
	})
}
