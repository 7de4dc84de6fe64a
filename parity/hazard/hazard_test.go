package hazard_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"samebits/parity/gate"
	"samebits/parity/hazard"
	"samebits/parity/result"
)

func TestCases(t *testing.T) {
	last, seen := "", map[string]bool{}
	for _, c := range hazard.Cases {
		if c.Section < last || hazard.Sections[c.Section] == "" {
			t.Errorf("%s: section %q after %q", c.ID, c.Section, last)
		}
		last = c.Section
		if seen[c.ID] || c.Title == "" || len(c.Threads) == 0 {
			t.Errorf("%s: twice, without a title or a report", c.ID)
		}
		seen[c.ID] = true
		if (c.LeftOut == "") == (len(c.Plants) == 0) {
			t.Errorf("%s: either it is planted, or it is left out and says why", c.ID)
		}
		for _, u := range c.URLs() {
			if !strings.HasPrefix(u, "https://github.com/") || strings.Contains(u[8:], "//") {
				t.Errorf("%s: %s", c.ID, u)
			}
		}
		for _, p := range c.Plants {
			if seen[p.Family] || !strings.HasPrefix(p.Family, strings.ToLower(c.ID)+"-") || len(p.Reasons) == 0 {
				t.Errorf("%s: %s is there twice, is of another case, or has no reason", c.ID, p.Family)
			}
			seen[p.Family] = true
			if p.OnGPU != "" && p.NeedsGPU {
				t.Errorf("%s is of a GPU alone, and has another reason there", p.Family)
			}
		}
	}
}

func TestFound(t *testing.T) {
	p := hazard.Plant{Family: "f", Verdict: result.Differs, Reasons: []gate.Reason{"A", "B"}, OnGPU: "C"}
	for _, c := range []struct {
		verdict result.Verdict
		reason  gate.Reason
		gpu     bool
		want    bool
	}{
		{result.Differs, "A", false, true},
		{result.Differs, "B", false, true},
		{result.Differs, "C", false, false},
		{result.Differs, "C", true, true},
		{result.Differs, "A", true, false},
		{result.Refused, "A", false, false},
		{result.Broken, "A", false, false},
	} {
		if got := p.Found(result.Result{Verdict: c.verdict, Reason: c.reason}, c.gpu); got != c.want {
			t.Errorf("%s %s, GPU %v: %v", c.verdict, c.reason, c.gpu, got)
		}
	}
	if hazard.Healthy(result.Result{Verdict: result.Consistent}, true) || !hazard.Healthy(result.Result{Verdict: result.Exact}, true) {
		t.Error("a GPU must prove a twin exact")
	}
	if !hazard.Healthy(result.Result{Verdict: result.Consistent}, false) || hazard.Healthy(result.Result{Verdict: result.Refused}, false) {
		t.Error("on the host a twin is consistent, and nothing else")
	}
}

func TestChoose(t *testing.T) {
	one, unknown := hazard.Choose([]string{"c16"}, nil)
	if len(one) != 1 || one[0].ID != "C16" || unknown != nil {
		t.Errorf("%v, unknown %v", one, unknown)
	}
	some, unknown := hazard.Choose([]string{"C97", "C999"}, []string{"b", "X"})
	if !slices.Equal(unknown, []string{"C999", "X"}) || len(some) != 5 || some[4].ID != "C97" {
		t.Errorf("%v, unknown %v", some, unknown)
	}
	if all, _ := hazard.Choose(nil, nil); len(all) != len(hazard.Cases) {
		t.Errorf("%d cases", len(all))
	}
}

var rewrite = flag.Bool("rewrite", false, "write the table of docs/selftest.md anew")

func TestDocument(t *testing.T) {
	const path, heading = "../../docs/selftest.md", "### A: "
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(document), heading)
	want := strings.TrimRight(before, "\n") + "\n\n" + hazard.Markdown()
	if *rewrite {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(document) != want {
		t.Errorf("the table of %s is not that of this package (go test -rewrite writes it anew)", path)
	}
}
