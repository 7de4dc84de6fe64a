// Package doctor looks at what is here, and says what each lack prevents. It works where everything is missing.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/recording"
	"samebits/parity/launch"
	"samebits/parity/suite"
)

// State is how a thing was found.
type State string

// The states.
const (
	OK      State = "ok"
	Missing State = "missing"
	Broken  State = "broken" // it is there and does not work
)

// Check is one thing that was looked for.
type Check struct {
	Name     string   `json:"name"`
	State    State    `json:"state"`
	Value    string   `json:"value,omitempty"`    // version, path
	Details  []string `json:"details,omitempty"`  // more of it, or why it does not work
	Prevents string   `json:"prevents,omitempty"` // what cannot be done without it
}

// Report is all that was found.
type Report struct {
	Checks  []Check  `json:"checks"`
	Devices []string `json:"devices"` // where parity verify can run now
}

// Ready reports whether anything can be verified.
func (r *Report) Ready() bool { return len(r.Devices) > 0 }

// Backend is what the doctor asks: a *launch.Launcher.
type Backend interface {
	Python() (string, error)
	Predictor() (string, error)
	Trainer() (string, error)
	EngineBuild() (string, error)
	Inspect(ctx context.Context) (launch.PythonInfo, error)
	Devices(ctx context.Context) ([]launch.Device, error)
	Reference(ctx context.Context) (suite.Arm, error)
}

// What lacks prevent.
const (
	everything = "every verification"
	onGPU      = "verification on a GPU; without it no family can be proved exact"
	onHost     = "verification on the device host"
	ofTraining = "verification of training"
)

type examination struct {
	Report
	native    map[string]bool // devices of the native engine that work
	reference map[string]bool // devices of PyTorch
}

// Examine looks at everything.
func Examine(ctx context.Context, b Backend) Report {
	e := examination{Report: Report{Devices: []string{}}, native: map[string]bool{}, reference: map[string]bool{}}
	e.engine(ctx, b)
	e.trainer(b)
	if e.python(ctx, b) {
		e.plugin(ctx, b)
	}
	for _, c := range e.Checks {
		if device, is := strings.CutPrefix(c.Name, "native device "); is && e.native[device] && e.reference[suite.Cell{Device: device}.ReferenceDevice()] {
			e.Devices = append(e.Devices, device)
		}
	}
	return e.Report
}

func (e *examination) add(name string, state State, value, prevents string, details ...string) {
	if state == OK {
		prevents = ""
	}
	e.Checks = append(e.Checks, Check{Name: name, State: state, Value: value, Prevents: prevents, Details: details})
}

// failed adds what an error says.
func (e *examination) failed(name string, state State, prevents string, err error) {
	e.add(name, state, "", prevents, strings.Split(strings.TrimSpace(err.Error()), "\n")...)
}

// engine looks at the native plugin and asks it for its devices, GPU and compiler with them.
func (e *examination) engine(ctx context.Context, b Backend) {
	program, err := b.Predictor()
	if err != nil {
		e.failed("native engine", Missing, everything, err)
		return
	}
	build, err := b.EngineBuild()
	if err != nil {
		e.failed("native engine", Broken, everything, err)
		return
	}
	devices, err := b.Devices(ctx)
	if err != nil {
		e.failed("native engine", Broken, everything, err)
		return
	}
	e.add("native engine", OK, fmt.Sprintf("%s, build %.16s", program, build), "")
	for _, d := range devices {
		name, prevents := "native device "+d.Name, onGPU
		if d.Name == suite.HostDevice {
			prevents = onHost
		}
		if d.Problem != "" {
			e.add(name, Missing, "", prevents, strings.Split(strings.TrimSpace(d.Problem), "\n")...)
			continue
		}
		e.native[d.Name] = true
		e.add(name, OK, "", "", lines(d.Environment)...)
	}
}

// trainer looks for the native plugin that trains.
func (e *examination) trainer(b Backend) {
	program, err := b.Trainer()
	if err != nil {
		e.failed("native trainer", Missing, ofTraining, err)
		return
	}
	e.add("native trainer", OK, program, "")
}

// needed are the packages without which the reference plugin does not start.
var needed = []string{"torch", "libreyolo", "grpcio", "protobuf", "blake3", "safetensors", "numpy"}

// python looks at the interpreter and its packages, and reports whether the reference plugin can be tried.
func (e *examination) python(ctx context.Context, b Backend) bool {
	path, err := b.Python()
	if err != nil {
		e.failed("Python", Missing, everything, err)
		return false
	}
	info, err := b.Inspect(ctx)
	if err != nil {
		e.failed("Python", Broken, everything, err)
		return false
	}
	e.add("Python", OK, fmt.Sprintf("%s, %s", info.Version, path), "")
	complete := true
	for _, name := range launch.Packages {
		switch version := info.Packages[name]; {
		case version != "":
			e.add("package "+name, OK, version, "")
		case slices.Contains(needed, name):
			complete = false
			e.add("package "+name, Missing, "", everything, "install it into "+path+"; `make setup` does")
		default:
			e.add("package "+name, Missing, "", "families that need it")
		}
	}
	return complete
}

// plugin starts the reference plugin and asks where PyTorch can run.
func (e *examination) plugin(ctx context.Context, b Backend) {
	a, err := b.Reference(ctx)
	if err != nil {
		e.failed("reference plugin", Broken, everything, err)
		return
	}
	defer a.Stop()
	d, err := a.Describe(ctx)
	if err != nil {
		e.failed("reference plugin", Broken, everything, err)
		return
	}
	e.add("reference plugin", OK, "version "+d.Version, "", lines(d.Environment)...)
	gpu := false
	for _, device := range d.Devices {
		e.reference[device] = true
		gpu = gpu || strings.HasPrefix(device, "cuda:")
	}
	if gpu {
		e.add("PyTorch on a GPU", OK, strings.Join(d.Devices, ", "), "")
		return
	}
	e.add("PyTorch on a GPU", Missing, "", onGPU, "PyTorch sees no CUDA device: no driver, no GPU, or a build without CUDA")
}

func lines(environment []recording.Setting) []string {
	all := make([]string, len(environment))
	for i, s := range environment {
		all[i] = s.Key + ": " + s.Value
	}
	return all
}
