package hazard_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"samebits/parity/gate"
	"samebits/parity/hazard"
	"samebits/parity/result"
)

// TestSeenOnGPU holds the table to what `parity selftest --device cuda:0 --json` printed on the GPU that goldens are of.
func TestSeenOnGPU(t *testing.T) {
	data, err := os.ReadFile("../../goldens/selftest/h200.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	type line struct {
		Case, Family string
		Verdict      result.Verdict
		Reason       gate.Reason
		Twin         result.Verdict
		OK           bool
		Environment  map[string]string
	}
	seen := map[string]line{}
	lines := json.NewDecoder(bytes.NewReader(data))
	for first := true; lines.More(); first = false {
		var l line
		if err := lines.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if first {
			if l.Environment["gpu"] == "" || l.Environment["torch"] == "" {
				t.Errorf("nothing says where it was seen: %v", l.Environment)
			}
			continue
		}
		if seen[l.Family].Family != "" {
			t.Errorf("%s is there twice", l.Family)
		}
		seen[l.Family] = l
	}
	for _, c := range hazard.Cases {
		for _, p := range c.Plants {
			l, ok := seen[p.Family]
			delete(seen, p.Family)
			switch {
			case p.Untried && !ok:
			case p.Untried:
				t.Errorf("%s was seen on a GPU: it is not untried any more", p.Family)
			case !ok:
				t.Errorf("%s was not seen on a GPU", p.Family)
			case !l.OK || l.Case != c.ID || !p.Found(result.Result{Verdict: l.Verdict, Reason: l.Reason}, true):
				t.Errorf("%s: %s %s, wanted %s %v", p.Family, l.Verdict, l.Reason, p.Verdict, p.Wants(true))
			case !hazard.Healthy(result.Result{Verdict: l.Twin}, true):
				t.Errorf("%s: its twin is %s", p.Family, l.Twin)
			}
		}
	}
	for family := range seen {
		t.Errorf("the table has no %s", family)
	}
}
