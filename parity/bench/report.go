// Package bench measures cells: how long a step takes in each arm and in torch.compile, what memory they take, and how long
// a process needs to its first prediction. It judges nothing; that an arm is right is for package suite to say.
package bench

import (
	"cmp"
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/parity/launch"
	"samebits/parity/result"
	"samebits/parity/smi"
	"samebits/parity/suite"
)

// Schema is the version of the report's JSON. docs/bench.md explains it, goldens/bench/schema.json describes it.
const Schema = 1

// Report is what one run measured.
type Report struct {
	Schema  int    `json:"schema"`
	Command string `json:"command"`
	Began   string `json:"began"` // RFC 3339
	Device  string `json:"device"`
	// GPUFigures is false on the device host: its times say nothing of a GPU.
	GPUFigures  bool              `json:"gpu_figures"`
	Arms        []string          `json:"arms"` // those that were asked for, in their order
	Settings    Settings          `json:"settings"`
	Monitor     Monitor           `json:"monitor"`
	Environment map[string]string `json:"environment"`
	Cells       []Cell            `json:"cells"`
	Ratios      []Ratio           `json:"ratios"`
}

// Settings say how much was measured.
type Settings struct {
	Rounds     int     `json:"rounds"`
	Iterations int     `json:"iterations"` // steps of an arm in a round; 0: as many as fill Seconds
	Seconds    float64 `json:"seconds"`
	Starts     int     `json:"starts"` // processes that were started for each kind of first prediction
}

// Monitor says who watched the GPU.
type Monitor struct {
	Program string `json:"program,omitempty"`
	Problem string `json:"problem,omitempty"` // why nobody did
}

// Outcome says whether there are figures.
type Outcome string

// The outcomes, from good to bad.
const (
	Measured Outcome = "measured"
	Partly   Outcome = "partly" // of a cell: not of all its arms
	// Differs: there are figures, but of other bits than it claims to give.
	Differs Outcome = "differs"
	Refused Outcome = "refused" // it does not do this cell
	Broken  Outcome = "broken"  // a plugin crashed or hung, or there was no memory
)

// Exit is the exit status of an outcome.
func (o Outcome) Exit() int {
	switch o {
	case Measured:
		return result.ExitExact
	case Differs:
		return result.ExitDiffers
	case Refused:
		return result.ExitRefused
	}
	return result.ExitInfrastructure
}

// Cell is what was measured of one cell.
type Cell struct {
	Task       string `json:"task"`
	Family     string `json:"family"`
	Size       string `json:"size"`
	ImgSize    int64  `json:"imgsz"`
	Batch      int64  `json:"batch"`
	Precision  string `json:"precision"`
	Profile    string `json:"profile"`
	Seed       uint64 `json:"seed"`
	Segment    string `json:"segment,omitempty"` // the part of the family's forward that was measured; empty: all of it
	Recording  string `json:"recording,omitempty"`
	Operations int    `json:"operations,omitempty"` // of the recording

	Outcome  Outcome          `json:"outcome"`
	Problems []result.Problem `json:"problems,omitempty"` // those that left nothing to measure
	Arms     []Arm            `json:"arms"`
	First    []First          `json:"first"`
	GPU      []smi.Sample     `json:"gpu"`
	Notes    []string         `json:"notes,omitempty"` // what to bear in mind of this cell's figures

	Reproduce string `json:"reproduce"`
}

// Arm is what was measured of one arm.
type Arm struct {
	Name     string           `json:"name"`
	Outcome  Outcome          `json:"outcome"`
	Problems []result.Problem `json:"problems,omitempty"` // why there are no figures, or not all
	Step     *Spread          `json:"step,omitempty"`     // of all rounds together
	Rounds   []Round          `json:"rounds,omitempty"`
	// Launches is what one step sends to the device, in LaunchUnit; 0: nobody could count.
	Launches   float64 `json:"launches,omitempty"`
	LaunchUnit string  `json:"launch_unit,omitempty"`
	Note       string  `json:"note,omitempty"` // what the arm said of itself
	Bits       *Bits   `json:"bits,omitempty"` // beside the eager reference's
	Memory     Memory  `json:"memory"`
	// Ready is how the process became ready to be measured, beside others that did at the same time. First has better times.
	Ready []launch.Stage `json:"ready,omitempty"`
}

// Spread sums up times of steps.
type Spread struct {
	MedianMS float64 `json:"median_ms"`
	MinMS    float64 `json:"min_ms"`
	Q1MS     float64 `json:"q1_ms"`
	Q3MS     float64 `json:"q3_ms"`
	IQRMS    float64 `json:"iqr_ms"` // Q3 - Q1
	Steps    int     `json:"steps"`
}

// Round is one turn of an arm.
type Round struct {
	Round  int `json:"round"` // from 1
	Place  int `json:"place"` // in the order of the round, from 1
	Warmup int `json:"warmup"`
	Spread
}

// Bits compares an arm's outputs with the eager reference's, for one input.
type Bits struct {
	Same      bool     `json:"same"`
	Outputs   int      `json:"outputs"`
	Different []string `json:"different,omitempty"` // their names
	MaxAbs    float64  `json:"max_abs,omitempty"`   // largest finite difference
	// Demanded says that this arm claims the same bits here.
	Demanded bool `json:"demanded"`
}

// Memory is what an arm's process took. What nobody could say is left out.
type Memory struct {
	// PeakBytes of the device: of PyTorch torch.cuda.max_memory_allocated since the build, of native arena, workspaces,
	// weights and outputs.
	PeakBytes int64 `json:"peak_bytes,omitempty"`
	// ReservedBytes is torch.cuda.max_memory_reserved, what PyTorch's allocator took from the device; native reserves nothing.
	ReservedBytes int64 `json:"reserved_bytes,omitempty"`
	ArenaBytes    int64 `json:"arena_bytes,omitempty"` // of native: the part that all results share
	// DeviceBytes is what the device had more in use while the process was there, by nvidia-smi: context, code and libraries, too.
	DeviceBytes int64 `json:"device_bytes,omitempty"`
	MaxRSSBytes int64 `json:"max_rss_bytes,omitempty"` // VmHWM of the process
	SharedBytes int64 `json:"shared_bytes,omitempty"`  // the part of it that is shared with parity: weights, inputs, outputs
}

// First is a first prediction: from the start of a process to its outputs.
type First struct {
	Name     string           `json:"name"` // for people
	Arm      string           `json:"arm"`
	Cache    string           `json:"cache,omitempty"` // of native's compiled kernels: cold, warm
	MS       float64          `json:"ms"`              // median of Times; 0: there are none
	Times    []float64        `json:"times_ms"`
	Stages   []launch.Stage   `json:"stages,omitempty"` // of the last process
	MaxRSS   int64            `json:"max_rss_bytes,omitempty"`
	Same     *bool            `json:"same_bits,omitempty"` // as the eager reference's
	Outcome  Outcome          `json:"outcome"`
	Problems []result.Problem `json:"problems,omitempty"`
}

// The names of first predictions.
const (
	FirstCold      = "native-graph, no kernel in the cache"
	FirstWarm      = "native-graph, kernels in the cache"
	FirstReference = "eager PyTorch"
)

// Arms lists what can be measured on a device, in the order of reports.
func Arms(onGPU, compile bool) []string {
	if !onGPU {
		return []string{arm.ReferenceEager, arm.NativeEager, arm.NativeGraph}
	}
	all := []string{arm.ReferenceEager, arm.ReferenceGraph}
	if compile {
		all = append(all, arm.ReferenceCompile)
	}
	return append(all, arm.NativeEager, arm.NativeGraph)
}

// HostNote is said of every figure of the device host.
const HostNote = "measured on the device host, the CPU: these are no GPU figures"

func newCell(c suite.Cell) Cell {
	return Cell{Task: c.Task, Family: c.Family, Size: c.Size, ImgSize: c.ImgSize, Batch: max(c.Batch, 1), Precision: c.Precision,
		Profile: c.Profile, Seed: c.Seed, Arms: []Arm{}, First: []First{}, GPU: []smi.Sample{}, Reproduce: "parity bench " + c.Flags()}
}

// Arm finds an arm of a cell by its name; nil: it was not asked for.
func (c *Cell) Arm(name string) *Arm {
	for i := range c.Arms {
		if c.Arms[i].Name == name {
			return &c.Arms[i]
		}
	}
	return nil
}

// FirstOf finds a first prediction by its name; nil: there is none.
func (c *Cell) FirstOf(name string) *First {
	for i := range c.First {
		if c.First[i].Name == name && c.First[i].MS > 0 {
			return &c.First[i]
		}
	}
	return nil
}

// outcomes lists those of all that was asked for.
func (c *Cell) outcomes() []Outcome {
	var all []Outcome
	for _, a := range c.Arms {
		all = append(all, a.Outcome)
	}
	for _, f := range c.First {
		all = append(all, f.Outcome)
	}
	return all
}

// settle sums up the outcomes of a cell's arms.
func (c *Cell) settle() {
	all := c.outcomes()
	good := func(o Outcome) bool { return o == Measured || o == Differs }
	switch {
	case c.Outcome != "":
	case !slices.ContainsFunc(all, good):
		c.Outcome = slices.MaxFunc(all, func(a, b Outcome) int { return cmp.Compare(a.Exit(), b.Exit()) })
	case slices.Contains(all, Refused) || slices.Contains(all, Broken):
		c.Outcome = Partly
	case slices.Contains(all, Differs):
		c.Outcome = Differs
	default:
		c.Outcome = Measured
	}
}

// Exit is the exit status of a cell: that of the worst of its parts.
func (c *Cell) Exit() int {
	worst := result.ExitExact
	if c.Outcome != Partly {
		worst = c.Outcome.Exit()
	}
	for _, o := range c.outcomes() {
		worst = max(worst, o.Exit())
	}
	return worst
}

// Name is the cell's name for people.
func (c *Cell) Name() string {
	name := c.Family
	if c.Size != "" {
		name += "-" + c.Size
	}
	if c.Task != "" {
		name += " " + c.Task
	}
	if c.ImgSize != 0 {
		name += fmt.Sprintf(" %d", c.ImgSize)
	}
	return fmt.Sprintf("%s batch %d %s", name, c.Batch, c.Precision)
}

// Key names a cell in a report.
type Key struct {
	Task, Family, Size string
	ImgSize, Batch     int64
	Precision, Profile string
	Seed               uint64
}

// KeyOf names a cell as it is asked for.
func KeyOf(c suite.Cell) Key {
	return Key{c.Task, c.Family, c.Size, c.ImgSize, max(c.Batch, 1), c.Precision, c.Profile, c.Seed}
}

// Key names the cell.
func (c *Cell) Key() Key {
	return Key{c.Task, c.Family, c.Size, c.ImgSize, c.Batch, c.Precision, c.Profile, c.Seed}
}
