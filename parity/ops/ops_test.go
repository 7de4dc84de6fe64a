package ops_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/host"
	"samebits/bridge/recording"
	"samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
	"samebits/parity/ops"
	"samebits/parity/ops/opstest"
	"samebits/parity/signature"
	"samebits/parity/values"
)

// sample is a recording of relu in two sizes, relu_ on every other column, neg, add with a broadcast argument, exp, and a view.
func sample(t *testing.T) []*signature.Operation {
	t.Helper()
	b := recordingtest.New("cuda")
	x := b.Tensor(recording.Input, "images", tensor.Float32, 4, 6)
	row := b.Tensor(recording.Input, "row", tensor.Float32, 6)
	b.Input("images", x)
	b.Input("row", row)
	one := func(name string, arguments []recording.Argument, sizes ...int64) int {
		y := b.Scratch(tensor.Float32, sizes...)
		b.Op(name, arguments, y)
		b.Output(name+strings.Repeat("'", len(b.R.Outputs)), y)
		return y
	}
	one("aten::relu", recordingtest.Args(recordingtest.Value("self", x)), 4, 6)
	one("aten::relu", recordingtest.Args(recordingtest.Value("self", row)), 6)
	y := one("aten::neg", recordingtest.Args(recordingtest.Value("self", x)), 4, 6)
	columns := b.View(y, []int64{4, 3}, []int64{6, 2}, 1)
	b.Op("aten::slice.Tensor", recordingtest.Args(recordingtest.Value("self", y)), columns)
	b.Op("aten::relu_", recordingtest.Args(recordingtest.Value("self", columns)), columns)
	one("aten::add.Tensor", recordingtest.Args(recordingtest.Value("self", y), recordingtest.Value("other", row)), 4, 6)
	one("aten::exp", recordingtest.Args(recordingtest.Value("self", y)), 4, 6)
	var set signature.Set
	if err := set.Add("sample", b.R); err != nil {
		t.Fatal(err)
	}
	return set.Operations()
}

func check(t *testing.T, c *ops.Checker, s *opstest.Starter) *ops.Report {
	t.Helper()
	c.Start = s
	if c.Device == "" {
		c.Device = "cuda:0"
	}
	r, err := c.Check(t.Context(), sample(t))
	if err != nil {
		t.Fatal(err)
	}
	r.SumUp()
	if s.Alive != 0 {
		t.Errorf("%d processes were left behind", s.Alive)
	}
	return r
}

// outcomes gives a line a finding.
func outcomes(r *ops.Report) []string {
	var all []string
	for _, f := range r.Findings {
		line := f.Operation + " " + string(f.Outcome)
		if f.Reason != "" {
			line += " " + f.Reason
		}
		all = append(all, line)
	}
	return all
}

var allExact = []string{"aten::add.Tensor exact", "aten::exp exact", "aten::neg exact", "aten::relu exact", "aten::relu exact",
	"aten::relu_ exact", "aten::slice.Tensor skipped VIEW"}

// with replaces the outcomes of operations.
func with(changes ...string) []string {
	all := slices.Clone(allExact)
	for _, c := range changes {
		name, _, _ := strings.Cut(c, " ")
		for i := range all {
			if strings.HasPrefix(all[i], name+" ") {
				all[i] = c
			}
		}
	}
	return all
}

func nextULP(x float32) float32 { return math.Float32frombits(math.Float32bits(x) ^ 1) }

var crash = &host.Error{Reason: host.ReasonCrashed, Plugin: "predictor", During: "Step", Summary: "ended by itself: signal 11"}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		checker ops.Checker
		starter opstest.Starter
		want    []string
		status  int
	}{
		{"all the same", ops.Checker{}, opstest.Starter{}, allExact, 0},
		{"one element of one operation", ops.Checker{}, opstest.Starter{Faults: opstest.Fault{Operation: "aten::neg", Element: 7, Change: nextULP}},
			with("aten::neg differs NATIVE_DIFFERS"), 1},
		{"one element beside", ops.Checker{}, opstest.Starter{Faults: opstest.Fault{Operation: "aten::relu_", Element: 2, Beside: true, Change: nextULP}},
			with("aten::relu_ differs NATIVE_DIFFERS"), 1},
		{"in batches of two", ops.Checker{BatchCount: 2}, opstest.Starter{Faults: opstest.Fault{Operation: "aten::neg", Element: 7, Change: nextULP}},
			with("aten::neg differs NATIVE_DIFFERS"), 1},
		{"refused", ops.Checker{}, opstest.Starter{Faults: opstest.Fault{Refuse: map[string]string{"aten::exp": "UNSUPPORTED"}}},
			with("aten::exp refused UNSUPPORTED"), 2},
		{"unknown, and listed once", ops.Checker{}, opstest.Starter{Faults: opstest.Fault{Lists: true, Refuse: map[string]string{"aten::relu": "UNKNOWN_OPERATION"}}},
			with("aten::relu refused UNKNOWN_OPERATION"), 2},
		{"unknown to PyTorch", ops.Checker{}, opstest.Starter{Refused: map[string]string{"aten::exp": "OPERATION_FAILED"},
			Faults: opstest.Fault{Refuse: map[string]string{"aten::exp": "UNSUPPORTED", "aten::neg": "UNSUPPORTED"}}},
			with("aten::exp skipped OPERATION_FAILED", "aten::neg refused UNSUPPORTED"), 2},
		{"fails without saying where", ops.Checker{}, opstest.Starter{Faults: opstest.Fault{Fails: map[string]error{"aten::exp": errors.New("no")}}},
			with("aten::exp refused BROKEN"), 2},
		{"crashes", ops.Checker{}, opstest.Starter{Faults: opstest.Fault{Fails: map[string]error{"aten::exp": crash}}},
			with("aten::exp broken PLUGIN_CRASHED"), 3},
		{"PyTorch is noisy", ops.Checker{}, opstest.Starter{PyTorch: opstest.Fault{Steps: func(step int) int { return step }}},
			with("aten::add.Tensor skipped EAGER_NOISE", "aten::exp skipped EAGER_NOISE", "aten::neg skipped EAGER_NOISE",
				"aten::relu skipped EAGER_NOISE", "aten::relu_ skipped EAGER_NOISE"), 0},
		{"too large", ops.Checker{MostBytes: 100}, opstest.Starter{},
			[]string{"aten::add.Tensor skipped TOO_LARGE", "aten::exp skipped TOO_LARGE", "aten::neg skipped TOO_LARGE", "aten::relu exact",
				"aten::relu skipped TOO_LARGE", "aten::relu_ exact", "aten::slice.Tensor skipped VIEW"}, 0},
		{"on the host, other NaNs and zeros", ops.Checker{Device: "host"}, opstest.Starter{Faults: opstest.Fault{Operation: "aten::relu_", Element: 1,
			Change: func(x float32) float32 { return x }, Every: func(x float64) float64 {
				if x == 0 {
					return math.Copysign(0, -1)
				}
				return x
			}}},
			with("aten::exp consistent ROUNDING", "aten::relu consistent OTHER_NAN", "aten::relu_ consistent OTHER_NAN",
				"aten::neg differs NATIVE_DIFFERS", "aten::add.Tensor consistent ROUNDING"), 1},
		{"on the host, a rounding", ops.Checker{Device: "host", Kinds: []values.Kind{values.Ordinary}},
			opstest.Starter{Faults: opstest.Fault{Operation: "aten::exp", Element: 3, Change: nextULP}}, with("aten::exp consistent ROUNDING"), 0},
		{"on the host, more than a rounding", ops.Checker{Device: "host", Kinds: []values.Kind{values.Ordinary}},
			opstest.Starter{Faults: opstest.Fault{Operation: "aten::exp", Element: 3, Change: func(x float32) float32 { return x + 1e5 }}},
			with("aten::exp differs NATIVE_DIFFERS"), 1},
		{"on the host, nothing to measure by", ops.Checker{Device: "host", Kinds: []values.Kind{values.Ordinary}},
			opstest.Starter{Faults: opstest.Fault{Every: func(x float64) float64 { return x * (1 + 1e-7) }},
				Doubles: opstest.Fault{Refuse: map[string]string{"aten::exp": "NO_DOUBLE_PRECISION"}}},
			with("aten::exp skipped NO_DOUBLE_PRECISION", "aten::add.Tensor consistent ROUNDING", "aten::neg differs NATIVE_DIFFERS",
				"aten::relu differs NATIVE_DIFFERS", "aten::relu_ differs NATIVE_DIFFERS"), 1},
		{"on the host, a number that is chosen", ops.Checker{Device: "host", Kinds: []values.Kind{values.Ordinary}},
			opstest.Starter{Faults: opstest.Fault{Operation: "aten::neg", Element: 3, Change: nextULP}}, with("aten::neg differs NATIVE_DIFFERS"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := check(t, &c.checker, &c.starter)
			if got := outcomes(r); !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
			if r.Exit() != c.status {
				t.Errorf("exit status %d, want %d", r.Exit(), c.status)
			}
		})
	}
}

// PyTorch runs where native does, and on the CPU beside the device host.
func TestDevices(t *testing.T) {
	for device, want := range map[string]map[string]string{
		"cuda:1": {arm.ReferenceEager: "cuda:1", arm.NativeEager: "cuda:1"},
		"host":   {arm.ReferenceEager: "cpu", arm.NativeEager: "host", arm.ReferenceFP64: "cpu"},
	} {
		s := &opstest.Starter{Faults: opstest.Fault{Operation: "aten::exp", Element: 3, Change: nextULP}}
		check(t, &ops.Checker{Device: device}, s)
		if !maps.Equal(s.Devices, want) {
			t.Errorf("%s: %v", device, s.Devices)
		}
	}
}

// A fault in one element is found where it is, whatever runs beside the operation.
func TestDifference(t *testing.T) {
	var first ops.Difference
	for i, count := range []int{100, 1} {
		c := &ops.Checker{BatchCount: count, Seed: 5}
		s := &opstest.Starter{Faults: opstest.Fault{Operation: "aten::add.Tensor", Element: 9, Change: nextULP}}
		r := check(t, c, s)
		largest, _ := s.Largest()
		if want := []int{6, 1}[i]; largest != want {
			t.Errorf("%d operations in a recording, want %d", largest, want)
		}
		if row := r.Operations[0]; row.Operation != "aten::add.Tensor" || row.Differing != 1 || row.Compared != 1 {
			t.Errorf("the failing operation is not first: %+v", r.Operations)
		}
		if total := r.Total(); total != (ops.Row{Operation: "all", Signatures: 7, Compared: 6, Exact: 5, Differing: 1, Skipped: 1}) {
			t.Errorf("%+v", total)
		}
		d := r.Findings[0].Differences[0]
		if d.Values != values.Ordinary || d.Tensor != "result 0" || !slices.Equal(d.At, []int64{1, 3}) || d.Bits.Different != 1 || d.Bits.MaxULP != 1 ||
			d.Bits.Elements != 24 || d.Beside {
			t.Errorf("%+v", d)
		}
		if len(d.Operands) != 2 || d.Operands[1].Argument != "other" || !strings.HasPrefix(d.Operands[0].Value, "0x") || d.Reference == d.Native {
			t.Errorf("operands %v, bits %s and %s", d.Operands, d.Reference, d.Native)
		}
		if i == 0 {
			first = d
		} else if first.Reference != d.Reference || first.Operands[0] != d.Operands[0] {
			t.Errorf("alone it has other values: %+v", d)
		}
	}
}

func TestBesideATensor(t *testing.T) {
	r := check(t, &ops.Checker{}, &opstest.Starter{Faults: opstest.Fault{Operation: "aten::relu_", Element: 2, Beside: true, Change: nextULP}})
	for _, f := range r.Findings {
		if f.Operation != "aten::relu_" {
			continue
		}
		if d := f.Differences[0]; !d.Beside || !slices.Equal(d.At, []int64{2}) || d.Tensor != "self as it was written" || d.Bits.Different != 1 {
			t.Errorf("%+v", d)
		}
	}
}

// After a crash the plugin is started again, and everything else is compared.
func TestACrashIsSurvived(t *testing.T) {
	s := &opstest.Starter{Faults: opstest.Fault{Fails: map[string]error{"aten::relu": crash}}}
	check(t, &ops.Checker{}, s)
	if s.Natives < 3 {
		t.Errorf("native was started %d times", s.Natives)
	}
}

func TestWhatEndsARun(t *testing.T) {
	missing := &host.Error{Reason: host.ReasonMissing, Plugin: "predictor", Summary: "there is none"}
	c := ops.Checker{Start: &opstest.Starter{Missing: missing}, Device: "cuda:0"}
	if _, err := c.Check(t.Context(), sample(t)); !errors.Is(err, missing) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &opstest.Starter{Faults: opstest.Fault{Fails: map[string]error{"aten::exp": errors.New("no")}}}
	c = ops.Checker{Start: s, Device: "cuda:0", BatchCount: 1, Progress: func(ops.Event) { cancel() }}
	r, err := c.Check(ctx, sample(t))
	if !errors.Is(err, context.Canceled) || len(r.Findings) != 2 || s.Alive != 0 { // the view, and the first that was compared
		t.Errorf("%v, %d findings, %d alive", err, len(r.Findings), s.Alive)
	}
}

func TestProgress(t *testing.T) {
	var last ops.Event
	done := 0
	c := &ops.Checker{BatchCount: 2, Progress: func(e ops.Event) {
		if e.Done <= done {
			t.Errorf("%d after %d", e.Done, done)
		}
		done, last = e.Done, e
	}}
	check(t, c, &opstest.Starter{Faults: opstest.Fault{Operation: "aten::neg", Change: nextULP}})
	if last != (ops.Event{Done: 6, Of: 6, Failed: 1}) {
		t.Errorf("%+v", last)
	}
}
