package gate

import (
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
)

func TestShapes(t *testing.T) {
	eager := []Run{{"A": outputs(1), "B": outputs(2)}, {"A": outputs(3), "B": outputs(4)}}
	healthy := Shapes{
		Names: []string{"640", "480"},
		Engage: Engagement{arm.PrepareReply{Captured: true}, arm.Stats{Captures: 2},
			arm.Stats{Captures: 2, Replays: 3, Launches: 3}, 3},
		Turns: []Turn{{0, "A", outputs(1)}, {1, "A", outputs(3)}, {0, "B", outputs(2)}},
	}
	for _, c := range []struct {
		name   string
		change func(s *Shapes)
		want   Reason
		says   string
	}{
		{"healthy", func(*Shapes) {}, "", ""},
		{"fell back", func(s *Shapes) { s.Engage.After.Fallbacks = 1 }, FellBack, "1 steps"},
		{"one graph", func(s *Shapes) { s.Engage.Before.Captures, s.Engage.After.Captures = 1, 1 }, NotCaptured, "1 graphs for 2 shapes"},
		{"the other's answer", func(s *Shapes) { s.Turns[1].Got = outputs(1) }, StaleOutput, "turn 2, of 480 after 640, probe A: it gives what is right for 640"},
		{"nobody's answer", func(s *Shapes) { s.Turns[0].Got = outputs(9) }, ShapeDiffers, "turn 1, of 640, probe A, output a"},
		{"another probe's answer", func(s *Shapes) { s.Turns[2].Got = outputs(1) }, ShapeDiffers, "turn 3, of 640 after 480, probe B"},
		{"an output more", func(s *Shapes) { s.Turns[2].Got = outputs(2, 2) }, OutputsOfOtherShape, "turn 3"},
		{"a key that runs eagerly", func(s *Shapes) {
			s.Stranger = Stranger{Key: "[7]", Became: RanEagerly, Outputs: outputs(8), Probe: "A"}
		}, "", ""},
		{"a key that is refused", func(s *Shapes) { s.Stranger = Stranger{Key: "[7]", Became: WasRefused, Probe: "A"} }, "", ""},
		{"a key that is replayed", func(s *Shapes) { s.Stranger = Stranger{Key: "[7]", Outputs: outputs(8), Probe: "A"} }, KeyIgnored, "[7]"},
		{"a key that gets another's answer", func(s *Shapes) {
			s.Stranger = Stranger{Key: "[7]", Became: RanEagerly, Outputs: outputs(1), Probe: "A"}
		}, StaleOutput, "the answer for 640"},
	} {
		s := healthy
		s.Turns = slices.Clone(healthy.Turns)
		c.change(&s)
		f, err := JudgeShape(s, eager)
		if err != nil || f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
	}
}

func TestSeam(t *testing.T) {
	order := []string{"A", "B"}
	whole := Run{"A": outputs(1, 2), "B": outputs(3, 4)}
	for _, c := range []struct {
		name string
		rest Run
		want Reason
		says string
	}{
		{"the same", whole, "", ""},
		{"other bits", Run{"A": outputs(1, 2), "B": outputs(3, 5)}, SeamDiffers, "behind backbone, probe B, output b"},
		{"an output less", Run{"A": outputs(1, 2), "B": outputs(3)}, OutputsOfOtherShape, "probe B"},
	} {
		f, err := JudgeSeam("backbone", whole, c.rest, order)
		if err != nil || f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%s: %+v, %v", c.name, f, err)
		}
	}
	if f, err := JudgeWhole("backbone", whole, outputs(1, 2), "A"); err != nil || f.Outcome != Passed {
		t.Errorf("the same again: %+v, %v", f, err)
	}
	if f, err := JudgeWhole("backbone", whole, outputs(1, 3), "A"); err != nil || f.Outcome != Failed || f.Reason != EagerNoise {
		t.Errorf("others again: %+v, %v", f, err)
	}
}
