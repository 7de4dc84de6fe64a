package verifypage

import (
	"encoding/json"
	"strings"
	"testing"

	"samebits/parity/page/pagetest"
	"samebits/parity/result"
)

// FuzzWrite makes pages of results in which somebody put whatever words he liked, and of whatever is read as a result.
func FuzzWrite(f *testing.F) {
	f.Add(hostile, []byte("{}"))
	f.Add("--><!--", []byte(`{"gates": {"a b": {"outcome": "x", "figures": {"differences": [{"sizes": [-1], "histogram": [{"elements": -5}]}], "outputs": [{}], "first_operation": {}}}}}`))
	f.Add("%", []byte(`{"memory": {"x": {"peak_bytes": 9223372036854775807, "arena_bytes": 1}}, "arms": ["x", "x"], "weights_bytes": -1, "launches": {"order": "AB", "kinds": ["a"]}}`))
	f.Add("\u202e", []byte(`{"processes": [{"arm": "x", "phases": [{"at_ms": 1e308, "took_ms": 1e308}, {"at_ms": 1, "took_ms": 5, "calls": -1}]}], "digests": {"steps": {"x": ["y"]}}}`))
	f.Fuzz(func(t *testing.T, words string, data []byte) {
		r := differs()
		r.Family, r.Task, r.Summary, r.Reproduce, r.Reason, r.Verdict = words, words, words, words, "X", result.Verdict(words)
		r.Environment = map[string]string{words: words}
		r.Arms = append(r.Arms, words)
		all := []result.Result{r}
		var other result.Result
		if json.Unmarshal(data, &other) == nil {
			all = append(all, other)
		}
		var b strings.Builder
		if err := Write(&b, all, Options{Command: words}); err != nil {
			t.Fatal(err)
		}
		pagetest.WellFormed(t, b.String())
		root := pagetest.Parse(t, b.String())
		pagetest.Accessible(t, root)
		pagetest.Coordinates(t, root, 0)
		if n := len(pagetest.Elements(root, "script", "img", "iframe", "link", "object")); n != 1 {
			t.Errorf("%d elements that load or run", n)
		}
	})
}
