package gate

import (
	"errors"
	"strings"
	"testing"

	"samebits/bridge/tensor"
)

func TestReproduces(t *testing.T) {
	order := []string{"A", "B"}
	right := Repetition{Run{"A": outputs(1, 2), "B": outputs(3, 4)}, "A", outputs(1, 2)}
	for _, c := range []struct {
		name          string
		first, second Repetition
		want          Reason
		says          string
		differences   int
	}{
		{"the same", right, right, "", "", 0},
		{"another process", right, Repetition{Run{"A": outputs(1, 2), "B": outputs(3, 5)}, "A", outputs(1, 2)}, EagerNoise, "two fresh processes: probe B, output b", 1},
		{"later in the first", Repetition{right.Run, "A", outputs(9, 2)}, right, StateMoved, "again in one process: probe A, output a", 1},
		{"later in the second", right, Repetition{right.Run, "A", outputs(1, 9)}, StateMoved, "again in one process: probe A, output b", 1},
		{"both: the state comes first", Repetition{right.Run, "A", outputs(9, 2)}, Repetition{Run{"A": outputs(1, 2), "B": outputs(5, 6)}, "A", outputs(1, 2)}, StateMoved, "again in one process", 3},
		{"an output less", right, Repetition{Run{"A": outputs(1, 2), "B": outputs(3)}, "A", outputs(1, 2)}, OutputsOfOtherShape, "1 outputs instead of 2", 0},
	} {
		f, err := JudgeReproduces(c.first, c.second, order)
		if err != nil {
			t.Fatal(err)
		}
		figures := f.Figures.(NoiseFigures)
		if f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) || !strings.Contains(f.Detail, c.says) || len(figures.Differences) != c.differences {
			t.Errorf("%s: %+v", c.name, f)
		}
		if figures.Processes != 2 || figures.Probes != 2 || figures.Outputs != 2 {
			t.Errorf("%s: %+v", c.name, figures)
		}
	}
}

func TestInputSeen(t *testing.T) {
	order := []string{"A", "B", "C"}
	for _, c := range []struct {
		name string
		c    Outputs
		want Reason
		ac   int
	}{
		{"all differ", outputs(5, 6), "", 2},
		{"in one output", outputs(1, 6), "", 1},
		{"two are the same", outputs(1, 2), InputNotSeen, 0},
	} {
		f := JudgeInputSeen(Run{"A": outputs(1, 2), "B": outputs(3, 4), "C": c.c}, order)
		figures := f.Figures.(SeenFigures)
		if f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) || figures.Different["A/C"] != c.ac || figures.Different["A/B"] != 2 || len(figures.Different) != 3 {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

func TestNative(t *testing.T) {
	order := []string{"A", "B"}
	reference := Run{"A": outputs(1, 2), "B": outputs(3, 4)}
	for _, c := range []struct {
		name        string
		native      Run
		want        Reason
		says        string
		differences int
	}{
		{"the same", reference, "", "", 0},
		{"one output", Run{"A": outputs(1, 2), "B": outputs(3, 5)}, NativeDiffers, "probe B, output b", 1},
		{"a probe less", Run{"A": outputs(1, 2)}, OutputsOfOtherShape, "probe B", 0},
	} {
		f, err := JudgeNative(reference, c.native, order)
		if err != nil {
			t.Fatal(err)
		}
		if f.Reason != c.want || (c.want == "") != (f.Outcome == Passed) || !strings.Contains(f.Detail, c.says) || len(f.Figures.(NativeFigures).Differences) != c.differences {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// judges are the gates that compare what two steps gave, each with the differences that it lists.
var judges = map[string]func(want, got Outputs) ([]Difference, error){
	"REPRODUCES": func(want, got Outputs) ([]Difference, error) {
		f, err := JudgeReproduces(Repetition{Run{"A": want}, "A", want}, Repetition{Run{"A": got}, "A", got}, []string{"A"})
		figures, _ := f.Figures.(NoiseFigures)
		return figures.Differences, err
	},
	"REPLAY": func(want, got Outputs) ([]Difference, error) {
		w := NewWatch(Run{"A": want})
		err := errors.Join(w.Replayed("A", got), w.Replayed("A", got))
		return w.Replay().Figures.(ReplayFigures).Differences, err
	},
	"NATIVE": func(want, got Outputs) ([]Difference, error) {
		f, err := JudgeNative(Run{"A": want}, Run{"A": got}, []string{"A"})
		figures, _ := f.Figures.(NativeFigures)
		return figures.Differences, err
	},
	"PROC": func(want, got Outputs) ([]Difference, error) {
		f, err := JudgeProcesses([]Process{{Run: Run{"A": want}}, {Run: Run{"A": got}}, {Run: Run{"A": got}}}, 0, []string{"A"})
		figures, _ := f.Figures.(ProcessFigures)
		return figures.Differences, err
	},
	"SEED": func(want, got Outputs) ([]Difference, error) {
		f, err := JudgeSeed([]Drawing{{Outputs: want}, {Outputs: want}}, []Drawing{{Outputs: got}, {Outputs: got}})
		figures, _ := f.Figures.(SeedFigures)
		return figures.Differences, err
	},
	"STREAM": func(want, got Outputs) ([]Difference, error) {
		f, err := JudgeSituation(Passage{Steps: []Taken{taken(want, got, true), taken(want, got, true)}})
		figures, _ := f.Figures.(SituationFigures)
		return figures.Differences, err
	},
	"SEAM": func(want, got Outputs) ([]Difference, error) {
		f, err := JudgeSeam("", Run{"A": want}, Run{"A": got}, []string{"A"})
		figures, _ := f.Figures.(SeamFigures)
		return figures.Differences, err
	},
	"SEAM, the whole": func(want, got Outputs) ([]Difference, error) {
		f, err := JudgeWhole("", Run{"A": want}, got, "A")
		figures, _ := f.Figures.(SeamFigures)
		return figures.Differences, err
	},
	"SHAPE": func(want, got Outputs) ([]Difference, error) {
		f, err := JudgeShape(Shapes{Names: []string{"640"}, Turns: []Turn{{Probe: "A", Got: got}, {Probe: "A", Got: got}}}, []Run{{"A": want}})
		figures, _ := f.Figures.(ShapeFigures)
		return figures.Differences, err
	},
}

// What cannot be compared is an error, and passes nowhere.
func TestTornOutputs(t *testing.T) {
	spec := tensor.Spec{Name: "y", DType: tensor.Float32, Sizes: []int64{1}}
	want, torn := Outputs{NewOutput(spec, []byte{1, 2, 3, 4})}, Outputs{NewOutput(spec, []byte{1, 2, 3})}
	for name, judge := range judges {
		if _, err := judge(want, torn); err == nil {
			t.Errorf("%s: three bytes of a float32 are no error", name)
		}
	}
	for _, run := range [][3]Outputs{{torn, want, want}, {want, torn, want}, {want, want, torn}} {
		if _, err := JudgeRounding(Run{"A": run[0]}, Run{"A": run[1]}, Run{"A": run[2]}, []string{"A"}); err == nil {
			t.Errorf("NATIVE on the host: three bytes of a float32 are no error")
		}
	}
	if _, err := JudgeRounding(Run{"A": want}, Run{"A": want}, Run{"A": want}, []string{"A"}, Run{"A": torn}); err == nil {
		t.Error("NATIVE on the host: three bytes of a float32 nearby are no error")
	}
}

// A step that differs everywhere is not listed everywhere.
func TestListedDifferences(t *testing.T) {
	many, other := make([]byte, 2*maxDifferences), make([]byte, 2*maxDifferences)
	for i := range other {
		other[i] = 1
	}
	for name, judge := range judges {
		listed, err := judge(outputs(many...), outputs(other...))
		if n := len(listed); err != nil || n != maxDifferences && name != "REPRODUCES" || n == 0 {
			t.Errorf("%s: %d differences are listed, %v", name, n, err)
		}
	}
}
