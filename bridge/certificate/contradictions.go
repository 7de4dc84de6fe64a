package certificate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
)

// Contradictions finds what no verification can have said, whoever signed it: a gate that did not pass, arms that gave other
// bits, subjects that are not what the predicate says.
func (s Statement) Contradictions() diag.Problems {
	var ps diag.Problems
	p := s.Predicate
	required := Order(p.Cell.Mode)
	if p.Seam != nil && p.Seam.Rest {
		required = append(required, Seam)
	}
	for _, id := range required {
		if _, has := p.Gates[id]; !has {
			ps.Add(GateNotPassed, "predicate.gates."+string(id), "it was not judged")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(p.Gates)) {
		f := p.Gates[id]
		at := "predicate.gates." + string(id)
		if len(f.Arms) == 0 && f.Outcome != Passed {
			ps.Add(GateNotPassed, at, "it is %s", said(f))
		}
		for _, name := range slices.Sorted(maps.Keys(f.Arms)) {
			if of := f.Arms[name]; of.Outcome != Passed && !excused(id, name, f) {
				ps.Add(GateNotPassed, at+".arms."+name, "it is %s", said(of))
			}
		}
		if sum := Sum(f.Arms); len(f.Arms) > 0 && (sum.Outcome != f.Outcome || sum.Reason != f.Reason) {
			ps.Add(Contradictory, at, "it is %s, and its arms make it %s", said(f), said(sum))
		}
		for _, name := range judged(id) {
			if _, has := f.Arms[name]; !has {
				ps.Add(GateNotPassed, at+".arms."+name, "it was not judged")
			}
		}
	}
	for _, name := range arms {
		if !slices.Contains(p.Arms, name) {
			ps.Add(Contradictory, "predicate.arms", "%s did not run", name)
			continue
		}
		if name == arm.ReferenceEager {
			continue
		}
		if len(p.Digests.Outputs[name]) == 0 || !sameOutputs(p.Digests.Outputs[arm.ReferenceEager], p.Digests.Outputs[name]) {
			ps.Add(Contradictory, "predicate.digests.outputs."+name, "they are not those of %s", arm.ReferenceEager)
		}
		if p.Cell.Mode == Train && (len(p.Digests.Steps[name]) == 0 || !slices.Equal(p.Digests.Steps[arm.ReferenceEager], p.Digests.Steps[name])) {
			ps.Add(Contradictory, "predicate.digests.steps."+name, "they are not those of %s", arm.ReferenceEager)
		}
	}
	for _, name := range graphArms {
		if r := p.Replays[name]; r.Captures < 1 || r.Replays < 1 {
			ps.Add(Contradictory, "predicate.replays."+name, "nothing was captured and replayed")
		}
	}
	if missing := p.Key.Missing(); len(missing) > 0 {
		ps.Add(Contradictory, "predicate.environment_key", "it lacks %s", strings.Join(missing, ", "))
	}
	if !maps.Equal(p.Key, KeyOf(p.Environment, p.Digests.Recording)) {
		ps.Add(Contradictory, "predicate.environment_key", "it is not the environment's")
	}
	for i, want := range []struct{ name, sum string }{{RecordingSubject, p.Digests.Recording}, {EngineSubject, p.Key[EngineKey]}} {
		if len(s.Subject) <= i || s.Subject[i].Name != want.name || s.Subject[i].Digest["blake3"] != want.sum {
			ps.Add(Contradictory, "subject."+want.name, "it is not what the predicate says")
		}
	}
	if want := SubjectOf(GoldensSubject, Goldens(p.Digests)); len(s.Subject) != 3 || s.Subject[2].Name != want.Name || !maps.Equal(s.Subject[2].Digest, want.Digest) {
		ps.Add(Contradictory, "subject.goldens", "it is not the list of the predicate's digests")
	}
	if !p.Expires.After(p.Created) {
		ps.Add(Contradictory, "predicate.expires", "it expires before it is made")
	}
	return ps
}

var graphArms = []string{arm.ReferenceGraph, arm.NativeGraph}

// judged lists the arms of each of which a gate says whether it passed: that one of them did is nothing of the others.
func judged(id GateID) []string {
	switch id {
	case SameRecording, Reproduces, InputSeen, Processes: // of the cell as a whole
		return nil
	case Native:
		return []string{arm.NativeEager, arm.NativeGraph}
	case HyperObeyed: // of eager: that hyperparameters matter
		return []string{arm.ReferenceEager, arm.ReferenceGraph, arm.NativeGraph}
	case Resume, Seam:
		return arms
	}
	return graphArms
}

// said is an outcome with its reason.
func said(f Finding) string {
	if f.Reason == "" {
		return string(f.Outcome)
	}
	return fmt.Sprintf("%s: %s", f.Outcome, f.Reason)
}

// excused reports whether a certificate may do without a gate of an arm: DEV where there is no second device, and SEED of an engine
// that draws nothing, if PyTorch's graph has shown that the step draws nothing.
func excused(id GateID, name string, f Finding) bool {
	of := f.Arms[name]
	switch {
	case of.Outcome != Skipped:
		return false
	case id == OtherDevice:
		return of.Reason == NoSecondDevice
	case id == SeedObeyed && name == arm.NativeGraph:
		reference := f.Arms[arm.ReferenceGraph]
		return of.Reason == NotApplicable && reference.Outcome == Passed && !draws(reference.Figures)
	}
	return false
}

// draws reports whether the figures of SEED say that the step depends on the generator. They are a struct, or what JSON made of one.
func draws(figures any) bool {
	var seen struct{ Random *bool }
	data, err := json.Marshal(figures)
	if err != nil || json.Unmarshal(data, &seen) != nil || seen.Random == nil {
		return true // nobody says so
	}
	return *seen.Random
}

func sameOutputs(a, b map[string]map[string]string) bool {
	return maps.EqualFunc(a, b, func(x, y map[string]string) bool { return maps.Equal(x, y) })
}
