package certificate_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	"samebits/parity/gate"
)

// copied gives a statement of which anything may be changed.
func copied(t *testing.T, s certificate.Statement) certificate.Statement {
	t.Helper()
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var other certificate.Statement
	if err := json.Unmarshal(data, &other); err != nil {
		t.Fatal(err)
	}
	return other
}

// armed changes what a gate says of one arm, and sums up anew, so that nothing else contradicts it.
func armed(s *certificate.Statement, id gate.ID, name string, f gate.Finding) {
	arms := maps.Clone(s.Predicate.Gates[id].Arms)
	arms[name] = f
	s.Predicate.Gates[id] = gate.Sum(arms)
}

// What a schema cannot see. Nothing else is wrong with these statements: each rule stands by itself.
func TestContradictions(t *testing.T) {
	statements := map[string]certificate.Statement{gate.Predict: granted(t, gate.Predict), gate.Train: granted(t, gate.Train)}
	skipped := gate.Skip(gate.NotReached, "")
	passed := func(random bool) gate.Finding {
		return gate.Finding{Outcome: gate.Passed, Figures: map[string]bool{"random": random}}
	}
	for _, c := range []struct {
		name, mode string
		spoil      func(s *certificate.Statement)
		want       []string // reasons with paths
	}{
		{"nothing", gate.Predict, func(*certificate.Statement) {}, nil},
		{"nothing of training", gate.Train, func(*certificate.Statement) {}, nil},
		{"a gate that is missing", gate.Predict, func(s *certificate.Statement) { delete(s.Predicate.Gates, gate.NotStale) },
			[]string{"GATE_NOT_PASSED predicate.gates.NOT-STALE"}},
		{"a seam whose rest was not judged", gate.Predict, func(s *certificate.Statement) { s.Predicate.Seam = &certificate.Cut{Rest: true} },
			[]string{"GATE_NOT_PASSED predicate.gates.SEAM"}},
		{"a gate without arms that was skipped", gate.Predict, func(s *certificate.Statement) { s.Predicate.Gates[gate.Reproduces] = skipped },
			[]string{"GATE_NOT_PASSED predicate.gates.REPRODUCES"}},
		{"one arm of two was skipped", gate.Predict, func(s *certificate.Statement) { armed(s, gate.Replay, arm.NativeGraph, skipped) },
			[]string{"GATE_NOT_PASSED predicate.gates.REPLAY.arms.native-graph"}},
		{"arms that make another sum", gate.Predict, func(s *certificate.Statement) {
			f := s.Predicate.Gates[gate.Replay]
			f.Reason = gate.StaleOutput
			s.Predicate.Gates[gate.Replay] = f
		}, []string{"CERTIFICATE_CONTRADICTORY predicate.gates.REPLAY"}},
		{"a situation that one arm did not go through", gate.Predict, func(s *certificate.Statement) { delete(s.Predicate.Gates[gate.Moved].Arms, arm.NativeGraph) },
			[]string{"GATE_NOT_PASSED predicate.gates.MOVE.arms.native-graph"}},
		{"one native arm", gate.Predict, func(s *certificate.Statement) { delete(s.Predicate.Gates[gate.Native].Arms, arm.NativeEager) },
			[]string{"GATE_NOT_PASSED predicate.gates.NATIVE.arms.native-eager"}},
		{"an arm that was not resumed", gate.Train, func(s *certificate.Statement) { delete(s.Predicate.Gates[gate.Resume].Arms, arm.ReferenceEager) },
			[]string{"GATE_NOT_PASSED predicate.gates.RESUME.arms.reference-eager"}},
		{"one device alone", gate.Predict, func(s *certificate.Statement) {
			armed(s, gate.OtherDevice, arm.ReferenceGraph, gate.Skip(gate.NoSecondDevice, ""))
			armed(s, gate.OtherDevice, arm.NativeGraph, gate.Skip(gate.NoSecondDevice, ""))
		}, nil},
		{"a second device that was not tried", gate.Predict, func(s *certificate.Statement) { armed(s, gate.OtherDevice, arm.NativeGraph, skipped) },
			[]string{"GATE_NOT_PASSED predicate.gates.DEV.arms.native-graph"}},
		{"one device alone, of another gate", gate.Predict, func(s *certificate.Statement) {
			armed(s, gate.Moved, arm.NativeGraph, gate.Skip(gate.NoSecondDevice, ""))
		}, []string{"GATE_NOT_PASSED predicate.gates.MOVE.arms.native-graph"}},
		{"an engine without a generator, of a step that draws nothing", gate.Predict, func(s *certificate.Statement) {
			armed(s, gate.SeedObeyed, arm.ReferenceGraph, passed(false))
			armed(s, gate.SeedObeyed, arm.NativeGraph, gate.Skip(gate.NotApplicable, ""))
		}, nil},
		{"an engine without a generator, of a step that draws", gate.Predict, func(s *certificate.Statement) {
			armed(s, gate.SeedObeyed, arm.ReferenceGraph, passed(true))
			armed(s, gate.SeedObeyed, arm.NativeGraph, gate.Skip(gate.NotApplicable, ""))
		}, []string{"GATE_NOT_PASSED predicate.gates.SEED.arms.native-graph"}},
		{"an engine without a generator, and nobody says whether the step draws", gate.Predict, func(s *certificate.Statement) {
			armed(s, gate.SeedObeyed, arm.ReferenceGraph, gate.Finding{Outcome: gate.Passed})
			armed(s, gate.SeedObeyed, arm.NativeGraph, gate.Skip(gate.NotApplicable, ""))
		}, []string{"GATE_NOT_PASSED predicate.gates.SEED.arms.native-graph"}},
		{"PyTorch without a generator", gate.Predict, func(s *certificate.Statement) {
			armed(s, gate.SeedObeyed, arm.ReferenceGraph, gate.Skip(gate.NotApplicable, ""))
		}, []string{"GATE_NOT_PASSED predicate.gates.SEED.arms.reference-graph"}},
		{"an arm that did not run", gate.Predict, func(s *certificate.Statement) {
			s.Predicate.Arms = slices.DeleteFunc(s.Predicate.Arms, func(name string) bool { return name == arm.NativeEager })
		}, []string{"CERTIFICATE_CONTRADICTORY predicate.arms"}},
		{"no outputs at all", gate.Predict, func(s *certificate.Statement) {
			s.Predicate.Digests.Outputs = nil
			s.Subject[2] = certificate.SubjectOf(certificate.GoldensSubject, certificate.Goldens(s.Predicate.Digests))
		}, []string{"CERTIFICATE_CONTRADICTORY predicate.digests.outputs.reference-graph",
			"CERTIFICATE_CONTRADICTORY predicate.digests.outputs.native-eager", "CERTIFICATE_CONTRADICTORY predicate.digests.outputs.native-graph"}},
		{"no steps of an arm", gate.Train, func(s *certificate.Statement) {
			delete(s.Predicate.Digests.Steps, arm.NativeGraph)
			s.Subject[2] = certificate.SubjectOf(certificate.GoldensSubject, certificate.Goldens(s.Predicate.Digests))
		}, []string{"CERTIFICATE_CONTRADICTORY predicate.digests.steps.native-graph"}},
		{"another step", gate.Train, func(s *certificate.Statement) {
			s.Predicate.Digests.Steps[arm.NativeEager][1] = strings.Repeat("0", 64)
			s.Subject[2] = certificate.SubjectOf(certificate.GoldensSubject, certificate.Goldens(s.Predicate.Digests))
		}, []string{"CERTIFICATE_CONTRADICTORY predicate.digests.steps.native-eager"}},
		{"nothing was captured", gate.Predict, func(s *certificate.Statement) {
			s.Predicate.Replays[arm.NativeGraph] = certificate.Replays{Replays: 15}
		}, []string{"CERTIFICATE_CONTRADICTORY predicate.replays.native-graph"}},
		{"nothing was replayed", gate.Predict, func(s *certificate.Statement) {
			s.Predicate.Replays[arm.ReferenceGraph] = certificate.Replays{Captures: 1}
		}, []string{"CERTIFICATE_CONTRADICTORY predicate.replays.reference-graph"}},
		{"no driver, in the environment neither", gate.Predict, func(s *certificate.Statement) {
			delete(s.Predicate.Key, "driver")
			delete(s.Predicate.Environment, "driver")
			delete(s.Predicate.Environment, "native.driver")
		}, []string{"CERTIFICATE_CONTRADICTORY predicate.environment_key"}},
		{"another driver than the environment's", gate.Predict, func(s *certificate.Statement) { s.Predicate.Key["driver"] = "1" },
			[]string{"CERTIFICATE_CONTRADICTORY predicate.environment_key"}},
		{"another program", gate.Predict, func(s *certificate.Statement) { s.Subject[1].Digest["blake3"] = strings.Repeat("0", 64) },
			[]string{"CERTIFICATE_CONTRADICTORY subject.engine"}},
		{"subjects in another order", gate.Predict, func(s *certificate.Statement) { slices.Reverse(s.Subject[:2]) },
			[]string{"CERTIFICATE_CONTRADICTORY subject.recording", "CERTIFICATE_CONTRADICTORY subject.engine"}},
		{"a subject of another name", gate.Predict, func(s *certificate.Statement) { s.Subject[0].Name = "weights" },
			[]string{"CERTIFICATE_CONTRADICTORY subject.recording"}},
		{"no subjects", gate.Predict, func(s *certificate.Statement) { s.Subject = nil },
			[]string{"CERTIFICATE_CONTRADICTORY subject.recording", "CERTIFICATE_CONTRADICTORY subject.engine", "CERTIFICATE_CONTRADICTORY subject.goldens"}},
		{"a subject more", gate.Predict, func(s *certificate.Statement) { s.Subject = append(s.Subject, s.Subject[0]) },
			[]string{"CERTIFICATE_CONTRADICTORY subject.goldens"}},
		{"good for no time", gate.Predict, func(s *certificate.Statement) { s.Predicate.Expires = s.Predicate.Created },
			[]string{"CERTIFICATE_CONTRADICTORY predicate.expires"}},
		{"good for a second", gate.Predict, func(s *certificate.Statement) { s.Predicate.Expires = s.Predicate.Created.Add(time.Second) }, nil},
	} {
		s := copied(t, statements[c.mode])
		c.spoil(&s)
		var got []string
		for _, p := range s.Contradictions() {
			got = append(got, p.Reason+" "+p.Path)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q instead of %q", c.name, got, c.want)
		}
	}
}

// Whatever is judged of several arms must have been judged of each that a verification has.
func TestEveryArmIsRequired(t *testing.T) {
	for _, mode := range []string{gate.Predict, gate.Train} {
		whole := granted(t, mode)
		for id, f := range whole.Predicate.Gates {
			for name := range f.Arms {
				s := copied(t, whole)
				delete(s.Predicate.Gates[id].Arms, name)
				want := "predicate.gates." + string(id) + ".arms." + name
				if !slices.ContainsFunc(s.Contradictions(), func(p diag.Problem) bool { return p.Path == want }) {
					t.Errorf("%s: %s passes without %s", mode, id, name)
				}
			}
		}
	}
}
