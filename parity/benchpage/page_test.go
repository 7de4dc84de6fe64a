package benchpage

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"samebits/bridge/arm"
	"samebits/parity/bench"
	"samebits/parity/launch"
	"samebits/parity/page/pagetest"
	"samebits/parity/result"
	"samebits/parity/smi"
)

// sample is a report as a GPU gives it: one cell with all figures, one in which arms failed, one of which there is nothing.
func sample() *bench.Report {
	yes, no := true, false
	r := &bench.Report{Schema: bench.Schema, Command: "parity bench 'yolo*' <all>", Began: "2026-05-04T10:11:12Z", Device: "cuda:0", GPUFigures: true,
		Arms: bench.Arms(true, true), Settings: bench.Settings{Rounds: 5, Seconds: 0.3, Starts: 3}, Monitor: bench.Monitor{Program: "nvidia-smi"},
		Environment: map[string]string{"gpu": "NVIDIA H200", "driver": "580.159", "torch": "2.11.0+cu130"}}
	whole := bench.Cell{Task: "detect", Family: "yolo9", Size: "t", ImgSize: 640, Batch: 1, Precision: "fp32", Recording: strings.Repeat("ab", 32), Operations: 821,
		Outcome: bench.Measured, Reproduce: "parity bench yolo9 --size t", Notes: []string{"the GPU's clock was between 1800 and 1980 MHz"}}
	for n, name := range r.Arms {
		ms := []float64{14.07, 3.75, 3.1, 4.28, 3.11}[n]
		a := bench.Arm{Name: name, Outcome: bench.Measured, Launches: 828, LaunchUnit: "graph nodes",
			Step:   &bench.Spread{MedianMS: ms, MinMS: ms * 0.96, Q1MS: ms * 0.99, Q3MS: ms * 1.02, IQRMS: ms * 0.03, Steps: 500},
			Memory: bench.Memory{PeakBytes: 91 << 20, ReservedBytes: 120 << 20, DeviceBytes: 700 << 20, MaxRSSBytes: 3 << 30}}
		for round := 1; round <= 5; round++ {
			median := ms * (1 + 0.004*float64(round-3))
			a.Rounds = append(a.Rounds, bench.Round{Round: round, Place: (n+round)%5 + 1, Warmup: 20, Spread: bench.Spread{MedianMS: median, MinMS: median, Q1MS: median, Q3MS: median, Steps: 100}})
		}
		if n > 0 {
			a.Bits = &bench.Bits{Same: name != arm.ReferenceCompile, Outputs: 6, Demanded: name != arm.ReferenceCompile, MaxAbs: 0.0012}
		}
		if name == arm.ReferenceCompile {
			a.Note = "2 breaks of the traced graph"
		}
		whole.Arms = append(whole.Arms, a)
	}
	stages := []launch.Stage{{Name: "start", MS: 120}, {Name: "imports", MS: 4100}, {Name: "construct", MS: 900}, {Name: "weights", MS: 1200}, {Name: "forward", MS: 800}}
	whole.First = []bench.First{
		{Name: bench.FirstWarm, Arm: arm.NativeGraph, Cache: "warm", MS: 1100, Times: []float64{1100}, Stages: stages[:2], Outcome: bench.Measured, Same: &yes},
		{Name: bench.FirstCold, Arm: arm.NativeGraph, Cache: "cold", MS: 5100, Times: []float64{5100}, Stages: stages[:3], Outcome: bench.Measured, Same: &no},
		{Name: bench.FirstReference, Arm: arm.ReferenceEager, MS: 7120, Times: []float64{7120}, Stages: stages, MaxRSS: 2 << 30, Outcome: bench.Measured},
	}
	for _, when := range []string{"before", "round 1", "after"} {
		whole.GPU = append(whole.GPU, smi.Sample{When: when, SMClock: 1980, MaxSMClock: 1980, Power: 412.53, PowerLimit: 700, Temperature: 47, PState: "P0"})
	}
	whole.GPU[1].ThrottledBy = []string{"power cap"}
	torn := bench.Cell{Task: "segment", Family: "sam", Size: "base", ImgSize: 1024, Batch: 1, Precision: "bf16", Outcome: bench.Partly, Reproduce: "parity bench sam",
		Segment: "get_image_embeddings", First: []bench.First{{Name: bench.FirstWarm, Outcome: bench.Broken, Problems: []result.Problem{{Reason: "OUT_OF_MEMORY", Summary: "no memory"}}}},
		Arms: []bench.Arm{whole.Arms[0], {Name: arm.ReferenceGraph, Outcome: bench.Broken, Problems: []result.Problem{{Reason: "PLUGIN_CRASHED", Summary: `it said <script>alert("x")</script>`}}}}}
	none := bench.Cell{Task: "detect", Family: "l2cs", Precision: "fp32", ImgSize: 448, Batch: 1, Outcome: bench.Refused, Reproduce: "parity bench l2cs",
		Problems: []result.Problem{{Reason: "CAPTURE_FAILED", Summary: "it reads the device", Detail: "at aten::item"}}}
	r.Cells = []bench.Cell{whole, torn, none}
	r.SumUp()
	return r
}

func render(t *testing.T, r *bench.Report) (string, *html.Node) {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String(), pagetest.Parse(t, b.String())
}

func TestPage(t *testing.T) {
	source, root := render(t, sample())
	pagetest.Offline(t, source, root)
	pagetest.Accessible(t, root)
	pagetest.Coordinates(t, root, 200)
}

// What a report quotes is text, whatever it looks like.
func TestQuoted(t *testing.T) {
	source, root := render(t, sample())
	if strings.Contains(source, "<script>alert") || len(pagetest.Elements(root, "script")) != 1 {
		t.Error("a plugin's words became a script")
	}
	if !strings.Contains(pagetest.Text(root), `it said <script>alert("x")</script>`) {
		t.Error("a plugin's words are not shown")
	}
}

func TestSays(t *testing.T) {
	_, root := render(t, sample())
	all := pagetest.Text(root)
	for _, want := range []string{
		"NVIDIA H200", "5 rounds of as many steps as fill 0.3 s", "yolo9-t detect 640 batch 1 fp32", "0.829", "821 operations",
		"2 breaks of the traced graph", "power cap", "sam-base segment 1024 batch 1 bf16", "PLUGIN_CRASHED", "OUT_OF_MEMORY", "get_image_embeddings",
		"l2cs detect 448 batch 1 fp32", "at aten::item", "native-graph, kernels in the cache", "7.12 s", "other, by at most 0.0012",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(all, bench.HostNote) {
		t.Error("figures of a GPU are called those of the host")
	}
}

// Figures of the host say so at the top, and an empty report is a page, too.
func TestHostAndEmpty(t *testing.T) {
	_, root := render(t, &bench.Report{Device: "host", Arms: bench.Arms(false, true), Monitor: bench.Monitor{Problem: "there is no GPU"}})
	if all := pagetest.Text(root); !strings.Contains(all, bench.HostNote) || !strings.Contains(all, "by nobody: there is no GPU") {
		t.Errorf("%s", all)
	}
}

// Of several precisions the ratio of all is a headline, of one its own; only native's are.
func TestHeadlines(t *testing.T) {
	ratio := func(of, precision string, cells int, x float64) bench.Ratio {
		return bench.Ratio{What: bench.StepTime, Of: of, To: "y", Precision: precision, Cells: cells, Geomean: x, Least: x / 2, Most: x * 2}
	}
	got := headlines(&bench.Report{Ratios: []bench.Ratio{ratio(arm.NativeGraph, "fp32", 2, 0.5), ratio(arm.NativeGraph, "bf16", 1, 0.6), ratio(arm.NativeGraph, "", 3, 0.55),
		ratio(arm.NativeEager, "fp32", 1, 1.25), ratio(arm.ReferenceCompile, "", 3, 0.7)}})
	want := []headline{{"0.550", "step time of native-graph, as a part of y", "geomean of 3 cells; 0.275 to 1.100", true},
		{"1.250", "step time of native-eager, as a part of y", "one cell", false}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// Where there is no graph of PyTorch's, its eager steps are what others are compared with.
func TestDots(t *testing.T) {
	r := sample()
	p := stepPlot(r)
	if p == nil || len(p.Rows) != 1 || len(p.Rows[0].Dots) != 4 || p.Title != "Step time as a part of reference-graph's" || p.Rows[0].Link != "#cell-1" {
		t.Fatalf("%+v", p)
	}
	for _, d := range p.Rows[0].Dots {
		faster := d.Arm == arm.ReferenceCompile || d.Arm == arm.NativeGraph
		if (d.X < p.One) != faster {
			t.Errorf("%s is drawn at %v, 1 at %v", d.Text, d.X, p.One)
		}
	}
	r.Arms = bench.Arms(false, false)
	if p := stepPlot(r); p == nil || p.Title != "Step time as a part of reference-eager's" || len(p.Rows[0].Dots) != 2 {
		t.Errorf("%+v", p)
	}
	if p := memoryPlot(r); p == nil || len(p.Rows[0].Dots) != 2 || p.Rows[0].Dots[0].X != p.One {
		t.Errorf("%+v", p)
	}
	if p := stepPlot(&bench.Report{Arms: r.Arms, Cells: r.Cells[2:]}); p != nil {
		t.Errorf("%+v", p)
	}
}

// Many rows have the axis on top, too, and make room for it.
func TestManyDots(t *testing.T) {
	r := sample()
	whole := r.Cells[0]
	few, many := *r, *r
	few.Cells, many.Cells = slices.Repeat([]bench.Cell{whole}, manyRows), slices.Repeat([]bench.Cell{whole}, manyRows+1)
	a, b := stepPlot(&few), stepPlot(&many)
	if a.TopLabels != 0 || b.TopLabels == 0 || !(b.Rows[0].Y > a.Rows[0].Y) || !(b.Rows[manyRows].Y < b.Bottom && b.Bottom < b.Height && a.Rows[manyRows-1].Y < a.Bottom) {
		t.Errorf("%v, %v; rows from %v and %v", a.TopLabels, b.TopLabels, a.Rows[0].Y, b.Rows[0].Y)
	}
}

// A row that was not measured says why.
func TestStages(t *testing.T) {
	r := sample()
	p := newStackPlot(&r.Cells[0])
	if p == nil || len(p.Rows) != 3 || p.Rows[0].End != "1.10 s (0.154)" || p.Rows[2].End != "7.12 s" || len(p.Rows[2].Parts) != 5 {
		t.Fatalf("%+v", p)
	}
	for n, part := range p.Rows[2].Parts {
		if n > 0 && part.X < p.Rows[2].Parts[n-1].X {
			t.Errorf("%s lies before the stage before it", part.Text)
		}
	}
	if p := newStackPlot(&r.Cells[1]); p != nil {
		t.Errorf("%+v", p)
	}
}

// TestSample writes the page of the sample, or of the report that SAMEBITS_REPORT names, where SAMEBITS_PAGE says, to be
// looked at.
func TestSample(t *testing.T) {
	path := os.Getenv("SAMEBITS_PAGE")
	if path == "" {
		t.Skip("SAMEBITS_PAGE names no file")
	}
	r := sample()
	if report := os.Getenv("SAMEBITS_REPORT"); report != "" {
		read, err := bench.Read(report)
		if err != nil {
			t.Fatal(err)
		}
		r = &read
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Write(f, r); err != nil {
		t.Fatal(err)
	}
}
