package matrix_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/parity/gate"
	"samebits/parity/matrix"
	"samebits/parity/result"
)

func row(task, family, precision string) result.Result {
	return result.Result{Task: task, Family: family, Size: "s", ImgSize: 64, Batch: 1, Mode: gate.Predict, Precision: precision, Profile: "exact-1", Device: "cuda:3",
		Verdict: result.Exact, Environment: map[string]string{"gpu": "NVIDIA H200", "driver": "580"}}
}

func timed(r result.Result, native, reference float64, our, their int64) result.Result {
	r.Timings = map[string]result.Timing{arm.NativeGraph: {MedianMS: native}, arm.ReferenceGraph: {MedianMS: reference}}
	r.Memory = map[string]result.Memory{arm.NativeGraph: {PeakBytes: our}, arm.ReferenceGraph: {PeakBytes: their}}
	return r
}

// Rows come by mode, device, task, and name; precisions in their usual order; what this program does not know comes behind.
func TestOrder(t *testing.T) {
	train, host, large := row("detect", "a", "fp32"), row("detect", "a", "fp32"), row("detect", "b", "fp32")
	train.Mode, host.Device, large.Batch = gate.Train, "host", 3
	all := []result.Result{train, host, row("gaze", "a", "fp32"), row("matte", "a", "fp32"), large, row("detect", "b", "fp8"), row("detect", "b", "fp16"),
		row("detect", "b", "bf16"), row("detect", "b", "fp32"), row("detect", "a", "fp32")}
	table := matrix.NewTable(all)
	var got []string
	for _, c := range table.Cells {
		got = append(got, fmt.Sprint(c.Mode, " ", c.Device, " ", c.Task, " ", c.Family, " ", c.Batch, " ", c.Precision))
	}
	want := []string{"predict cuda detect a 1 fp32", "predict cuda detect b 1 fp32", "predict cuda detect b 1 bf16", "predict cuda detect b 1 fp16", "predict cuda detect b 1 fp8",
		"predict cuda detect b 3 fp32", "predict cuda matte a 1 fp32", "predict cuda gaze a 1 fp32", "predict host detect a 1 fp32", "train cuda detect a 1 fp32"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if p := table.Precisions(); !slices.Equal(p, []string{"fp32", "bf16", "fp16", "fp8"}) {
		t.Errorf("%q", p)
	}
	var rows []string
	table.Rows(func(r matrix.Row, cells map[string]matrix.Cell) {
		rows = append(rows, fmt.Sprint(r.Family, len(cells)))
	})
	if !slices.Equal(rows, []string{"a1", "b4", "b1", "a1", "a1", "a1", "a1"}) {
		t.Errorf("%q", rows)
	}
	if !slices.IsSortedFunc([]result.Result{all[9], all[8], all[0]}, matrix.Compare) || matrix.Compare(all[0], all[9]) <= 0 {
		t.Error("results have another order than cells")
	}
}

// Ratios are of two figures that are there.
func TestRatios(t *testing.T) {
	one := row("detect", "a", "fp32")
	one.Timings = map[string]result.Timing{arm.NativeGraph: {MedianMS: 3}}
	one.Memory = map[string]result.Memory{arm.NativeGraph: {PeakBytes: 3}}
	for _, c := range []struct {
		name         string
		r            result.Result
		time, memory float64
	}{
		{"both", timed(row("detect", "a", "fp32"), 3, 4, 1, 2), 0.75, 0.5},
		{"none", row("detect", "a", "fp32"), 0, 0},
		{"native's alone", one, 0, 0},
		{"nobody counted PyTorch's memory", timed(row("detect", "a", "fp32"), 3, 4, 1, 0), 0.75, 0},
		{"nobody counted native's memory", timed(row("detect", "a", "fp32"), 3, 4, 0, 2), 0.75, 0},
	} {
		cell := matrix.NewTable([]result.Result{c.r}).Cells[0]
		if cell.Ratio() != c.time || cell.MemoryRatio() != c.memory {
			t.Errorf("%s: %g and %g", c.name, cell.Ratio(), cell.MemoryRatio())
		}
		if c.name != "both" && c.memory == 0 && (cell.NativePeak != 0 || cell.ReferencePeak != 0) || c.time == 0 && cell.NativeGraph != 0 {
			t.Errorf("%s: half a ratio: %+v", c.name, cell)
		}
	}
}

func TestTotalsAndEnvironments(t *testing.T) {
	differs, other, early, broken := row("detect", "b", "fp32"), row("detect", "c", "fp32"), row("detect", "d", "bf16"), row("detect", "e", "bf16")
	differs.Verdict, other.Environment = result.Differs, map[string]string{"gpu": "NVIDIA H100", "driver": "580", "engine_build": "x"}
	early.Environment = map[string]string{"driver": "580"} // it ended before native said where it ran
	broken.Verdict, broken.Environment = result.Broken, map[string]string{"engine_build": "x"}
	table := matrix.NewTable([]result.Result{broken, early, other, differs, row("detect", "a", "fp32")})
	want := []matrix.Total{{Mode: "predict", Precision: "fp32", Cells: 3, Verdicts: map[result.Verdict]int{result.Exact: 2, result.Differs: 1}},
		{Mode: "predict", Precision: "bf16", Cells: 2, Verdicts: map[result.Verdict]int{result.Exact: 1, result.Broken: 1}}}
	if !reflect.DeepEqual(table.Totals, want) {
		t.Errorf("%+v", table.Totals)
	}
	var machines []string
	for _, e := range table.Environments {
		machines = append(machines, fmt.Sprint(e.Cells, " ", strings.TrimSpace(e.Settings["gpu"]+" "+e.Settings["driver"])))
		if e.Settings["engine_build"] != "" {
			t.Errorf("%v", e.Settings)
		}
	}
	if !slices.Equal(machines, []string{"2 NVIDIA H100 580", "2 NVIDIA H200 580"}) {
		t.Errorf("%q", machines)
	}
	for _, c := range table.Cells {
		if c.Good() != (c.Verdict == result.Exact) {
			t.Errorf("%s is good: %v", c.Verdict, c.Good())
		}
	}
}
