package suite

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/parity/gate"
	"samebits/parity/result"
)

// A row of a table of docs/gates.md: a reason, what it means, and a verdict.
var row = regexp.MustCompile("(?m)^\\| `([A-Z0-9_]+)` \\|.*\\| (.*) \\|$")

// docs/gates.md says of each reason of each gate which verdict a cell has by it.
func TestVerdictsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/gates.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]map[string]string{} // verdict by reason
	for _, text := range strings.Split(string(page), "\n## ")[1:] {
		title, rest, _ := strings.Cut(text, "\n")
		sections[title] = map[string]string{}
		for _, found := range row.FindAllStringSubmatch(rest, -1) {
			sections[title][found[1]] = found[2]
		}
	}
	tried := 0
	for _, mode := range []string{gate.Predict, gate.Train} {
		ids := gate.Order(mode)
		if mode == gate.Predict {
			ids = append(ids, gate.Seam, gate.Shape)
		}
		for _, id := range ids {
			rows := sections[string(id)]
			if rows == nil {
				t.Errorf("docs/gates.md has no section %s", id)
			}
			if slices.Contains(gate.Situations, id) {
				rows = maps.Clone(rows)
				maps.Copy(rows, sections["Situations"])
			}
			for reason, words := range rows {
				tried++
				f := gate.Finding{Outcome: gate.Failed, Reason: gate.Reason(reason), Arms: map[string]gate.Finding{
					arm.NativeGraph: {Outcome: gate.Failed, Reason: gate.Reason(reason)}}}
				want := words
				if id == gate.Replay && reason == "PROCESS_DIFFERS" {
					want = "`differs`"
				}
				if got := verdictOf(mode, id, f); "`"+string(got)+"`" != want {
					t.Errorf("%s of mode %s, %s: %s, and the page says %s", id, mode, reason, got, words)
				}
			}
		}
	}
	if tried < 60 {
		t.Errorf("only %d reasons were tried", tried)
	}
	noise := gate.Finding{Outcome: gate.Failed, Reason: gate.ProcessDiffers, Arms: map[string]gate.Finding{
		arm.ReferenceGraph: {Outcome: gate.Failed, Reason: gate.ProcessDiffers}}}
	if got := verdictOf(gate.Predict, gate.Replay, noise); got != result.EagerNoise {
		t.Errorf("PyTorch's processes that do not agree: %s", got)
	}
}

// The first gate that failed says what the cell is, and what is skipped says nothing.
func TestFirstFailureCounts(t *testing.T) {
	failed := func(reason gate.Reason) gate.Finding {
		return gate.Finding{Outcome: gate.Failed, Reason: reason, Detail: "as seen"}
	}
	v := &verification{suite: &Suite{}, cell: Cell{Device: "cuda:0"}}
	v.result.Gates = map[gate.ID]gate.Finding{gate.Reproduces: {Outcome: gate.Passed}, gate.InputSeen: gate.Skip(gate.NotAsked, ""),
		gate.Engaged: failed(gate.FellBack), gate.Native: failed(gate.NativeDiffers), gate.Shape: failed(gate.KeyIgnored)}
	if verdict, reason, summary := v.verdict(); verdict != result.Refused || reason != gate.FellBack || summary != "ENGAGED: as seen" {
		t.Errorf("%s %s %s", verdict, reason, summary)
	}
}

// verdictOf is the verdict of a cell of which one gate failed.
func verdictOf(mode string, id gate.ID, f gate.Finding) result.Verdict {
	v := &verification{suite: &Suite{}, cell: Cell{Mode: mode, Device: "cuda:0"}}
	v.result.Gates = map[gate.ID]gate.Finding{id: f}
	verdict, _, _ := v.verdict()
	return verdict
}
