package convert

import (
	"bytes"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/fuzztest"
)

// FuzzProblems reads what a plugin says was wrong, in a trailer or in the control block.
func FuzzProblems(f *testing.F) {
	f.Add(EncodeProblems(diag.Problems{{Reason: "UNKNOWN_OPERATION", Path: "operations[3]", Summary: "no aten::frobnicate", Detail: "none"}}, MaxTrailer), uint16(100))
	f.Add(EncodeProblems(diag.Problems{{Reason: "A", Summary: "\x1b[2J"}, {Reason: "B"}}, MaxTrailer), uint16(4000))
	f.Fuzz(func(t *testing.T, data []byte, limit uint16) {
		var problems diag.Problems
		var err error
		fuzztest.Bounded(t, len(data), 1<<20, 200, func() { problems, err = DecodeProblems(data) })
		if err != nil {
			return // the host ends such a plugin
		}
		for _, p := range problems {
			for _, text := range []string{p.Reason, p.Path, p.Summary, p.Detail} {
				if !fuzztest.Readable(text) {
					t.Errorf("it would be shown: %q", text)
				}
			}
		}
		if len(problems) == 0 {
			return
		}
		most := 256 + int(limit)
		encoded := EncodeProblems(problems, most)
		if len(encoded) > most {
			t.Errorf("%d bytes instead of %d", len(encoded), most)
		}
		again, err := DecodeProblems(encoded)
		if err != nil || len(again) == 0 {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if whole := EncodeProblems(problems, 1<<30); !bytes.Equal(EncodeProblems(mustDecode(t, whole), 1<<30), whole) {
			t.Error("it has two encodings")
		}
	})
}

func mustDecode(t *testing.T, data []byte) diag.Problems {
	t.Helper()
	problems, err := DecodeProblems(data)
	if err != nil {
		t.Fatal(err)
	}
	return problems
}
