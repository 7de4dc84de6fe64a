package bench_test

import (
	"bytes"
	"strings"
	"testing"

	"samebits/bridge/fuzztest"
	"samebits/parity/bench"
	"samebits/parity/suite/suitetest"
)

// parse checks what holds of any bytes.
func parse(t *testing.T, data []byte) {
	t.Helper()
	var r bench.Report
	var err error
	fuzztest.Bounded(t, len(data), 1<<20, 400, func() { r, err = bench.Parse("bench.json", data) })
	if err != nil {
		if text := err.Error(); !strings.HasPrefix(text, "bench.json is ") || !fuzztest.Readable(text) || len(text) > 8<<10 {
			t.Errorf("it does not say what is wrong where: %q", text)
		}
		return
	}
	r.SumUp()
	for _, c := range r.Cells {
		if !r.Has(c.Key()) {
			t.Errorf("%v is not found", c.Key())
		}
		_ = c.Exit()
	}
	first := spelled(t, r)
	again, err := bench.Parse("again", first)
	if err != nil {
		t.Fatalf("written and read again it is refused: %v", err)
	}
	again.SumUp()
	if second := spelled(t, again); !bytes.Equal(second, first) {
		t.Errorf("it has two spellings:\n%s\n%s", first, second)
	}
}

func spelled(t *testing.T, r bench.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func FuzzParse(f *testing.F) {
	for _, device := range []string{"cuda:0", "host"} {
		f.Add(spelledSeed(f, device))
	}
	f.Add([]byte(`{"schema":1}`))
	f.Fuzz(parse)
}

// FuzzEdit puts other values into a report, which other bytes would mostly not leave JSON.
func FuzzEdit(f *testing.F) {
	seeds := [][]byte{spelledSeed(f, "cuda:0"), spelledSeed(f, "host")}
	for i := range seeds {
		f.Add(uint8(i), fuzztest.Edit(uint16(20+i), 4, -1))
	}
	f.Fuzz(func(t *testing.T, which uint8, edits []byte) {
		parse(t, fuzztest.EditJSON(t, seeds[int(which)%len(seeds)], edits))
	})
}

func spelledSeed(f *testing.F, device string) []byte {
	f.Helper()
	var b bytes.Buffer
	r := report(f, suitetest.Faults{}, device)
	if err := r.Encode(&b); err != nil {
		f.Fatal(err)
	}
	return b.Bytes()
}
