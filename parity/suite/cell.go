package suite

import (
	"fmt"
	"strconv"
	"strings"

	"samebits/bridge/arm"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/schedule"
	"samebits/parity/shell"
)

// HostDevice is the device of the native engine that needs no GPU.
const HostDevice = "host"

// Cell is what one verdict is about.
type Cell struct {
	Family, Size, Task string // size and task empty: the family's own
	ImgSize, Batch     int64  // 0: the family's own, 1
	Precision          string // fp32, bf16, fp16
	Profile            string // exact-1
	Seed               uint64
	Device             string          // cuda:N, host
	Mode               string          // predict (also where empty), train
	Training           schedule.Recipe // of mode train
}

// Trains reports whether the cell is a training run.
func (c Cell) Trains() bool { return c.Mode == gate.Train }

func (c Cell) mode() string {
	if c.Mode == "" {
		return gate.Predict
	}
	return c.Mode
}

// OnGPU reports whether the cell runs on a GPU.
func (c Cell) OnGPU() bool { return c.Device != HostDevice }

// ReferenceDevice is where PyTorch runs.
func (c Cell) ReferenceDevice() string {
	if c.OnGPU() {
		return c.Device
	}
	return "cpu"
}

func (c Cell) String() string {
	var b strings.Builder
	b.WriteString(c.Family)
	if c.Size != "" {
		b.WriteString("-" + c.Size)
	}
	if c.Task != "" {
		b.WriteString(" " + c.Task)
	}
	if c.Trains() {
		b.WriteString(" train")
	}
	if c.ImgSize != 0 {
		fmt.Fprintf(&b, " %d", c.ImgSize)
	}
	fmt.Fprintf(&b, " batch %d %s on %s", max(c.Batch, 1), c.Precision, c.Device)
	return b.String()
}

// Flags are the command line's flags for exactly this cell.
func (c Cell) Flags() string {
	var b strings.Builder
	add := func(flag, value string) {
		if value != "" {
			b.WriteString(" --" + flag + " " + shell.Quote(value))
		}
	}
	b.WriteString(shell.Quote(c.Family))
	add("size", c.Size)
	add("task", c.Task)
	if c.ImgSize != 0 {
		add("imgsz", fmt.Sprint(c.ImgSize))
	}
	add("batch", fmt.Sprint(max(c.Batch, 1)))
	add("precision", c.Precision)
	add("profile", c.Profile)
	add("seed", fmt.Sprint(c.Seed))
	add("device", c.Device)
	if c.Trains() {
		b.WriteString(" --mode train")
		t := c.Training
		number := func(flag string, v float64) { add(flag, strconv.FormatFloat(v, 'g', -1, 64)) }
		add("steps", fmt.Sprint(t.Steps))
		number("lr", t.LR)
		add("warmup-steps", fmt.Sprint(t.WarmupSteps))
		add("plateau-steps", fmt.Sprint(t.PlateauSteps))
		number("min-lr-ratio", t.MinLRRatio)
		number("momentum", t.Momentum)
		number("weight-decay", t.WeightDecay)
		number("ema-decay", t.EMADecay)
		number("ema-tau", t.EMATau)
	}
	return b.String()
}

// command is the command that verifies this cell again.
func (c Cell) command() string { return "parity verify " + c.Flags() }

// buildRequest asks a reference plugin for this cell's model.
func (c Cell) buildRequest(armName string) arm.BuildRequest {
	r := arm.BuildRequest{Family: c.Family, Size: c.Size, Task: c.Task, Seed: c.Seed, Precision: c.Precision,
		Profile: c.Profile, Device: c.ReferenceDevice(), Arm: armName, ImgSize: c.ImgSize, Batch: c.Batch, Mode: c.Mode}
	if armName == arm.ReferenceFP64 {
		r.Precision = "fp64"
	}
	return r
}

// Result starts the result of this cell.
func (c Cell) Result() result.Result {
	return result.Result{Schema: result.Schema, Task: c.Task, Family: c.Family, Size: c.Size, ImgSize: c.ImgSize,
		Batch: max(c.Batch, 1), Mode: c.mode(), Precision: c.Precision, Profile: c.Profile, Seed: c.Seed, Device: c.Device,
		Arms: []string{}, Gates: map[gate.ID]gate.Finding{}, Timings: map[string]result.Timing{}, Environment: map[string]string{}, Reproduce: c.command()}
}
