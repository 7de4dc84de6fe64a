// Package predict predicts through the native plugin: what a Go program imports that runs recordings, and replays the graphs of
// certified cells.
//
//	model, err := predict.Open(ctx, predict.Options{Plugin: "bin/samebits-predictor", Device: "cuda:0", CUDAGraph: "auto"},
//		predict.Recording{File: recordingFile, Weights: weightsFile})
//	defer model.Close()
//	outputs, err := model.Predict(ctx, inputs)
//
// CUDAGraph is false, true or auto, in any case. True is refused with arm.ErrUnimplemented (UNIMPLEMENTED on the wire) where no
// certificate of the cell verifies for the environment at hand; auto runs eagerly there, which one line says.
package predict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/bridge/recording"
	"samebits/bridge/replay"
	"samebits/bridge/tensor"
)

// Options of a model. Plugin and Device are needed.
type Options struct {
	Plugin    string // the program samebits-predictor
	Args      []string
	Env       []string // KEY=VALUE beside what plugins get anyway
	Device    string   // cuda:0, host
	CUDAGraph string   // false (also where empty), true, auto
	// Certificates is a file or a folder; empty: what SAMEBITS_CERTIFICATES names, or else those that were built in.
	Certificates string
	// Log takes one line when steps run eagerly though graphs were asked for; nil: nobody.
	Log func(line string)
}

// Recording is what a model runs: the files that parity record writes.
type Recording struct{ File, Weights []byte }

// Model is one or several recordings of a family. It is used by one goroutine at a time.
type Model struct {
	options Options
	plugin  *host.Plugin
	build   string
	mode    replay.Mode
	graphs  replay.Graphs
	shapes  []*shape
	loading arm.Room // where a recording and its weights lie while they are loaded
}

// shape is a recording with its banks. It is what a graph is captured of.
type shape struct {
	model    *Model
	number   int
	header   recording.Header
	inputs   []tensor.Spec
	outputs  []tensor.Spec
	support  certificate.Support
	graph    *replay.Graph
	in, out  host.Bank
	from, to [][]byte
	captured bool
	ctx      context.Context // of the step that runs
}

// Open starts the plugin and loads a recording.
func Open(ctx context.Context, o Options, r Recording) (*Model, error) {
	mode := replay.Off
	if o.CUDAGraph != "" {
		var err error
		if mode, err = replay.ParseMode(o.CUDAGraph); err != nil {
			return nil, err // before any work
		}
	}
	plugin, err := host.Start(ctx, host.Config{Name: "predictor", Command: o.Plugin, Args: o.Args, Env: o.Env})
	if err != nil {
		return nil, err
	}
	m := &Model{options: o, plugin: plugin, mode: mode}
	m.graphs.Mode, m.graphs.Warn, m.graphs.Trial = mode, m.log, o.Device == "host"
	if m.build, err = buildOf(o.Plugin); err == nil {
		err = m.Add(ctx, r)
	}
	if err != nil {
		return nil, errors.Join(err, plugin.Stop())
	}
	return m, nil
}

// buildOf is the digest of the plugin's program: what runs, not what it says of itself.
func buildOf(program string) (string, error) {
	if !strings.ContainsRune(program, filepath.Separator) {
		return "", nil // found in PATH: nobody knows which one was started
	}
	return certificate.BuildOf(program)
}

func (m *Model) log(line string) {
	if m.options.Log != nil {
		m.options.Log(line)
	}
}

// Add loads a further recording of the family, at another image size, batch or precision. What is refused leaves the others as
// they were.
func (m *Model) Add(ctx context.Context, r Recording) (err error) {
	parsed, err := recording.Decode(r.File)
	if err != nil {
		return err
	}
	s := &shape{model: m, number: len(m.shapes), header: parsed.Header}
	request := host.LoadRequest{Device: m.options.Device, Arm: arm.NativeGraph, Options: []recording.Setting{{Key: "graph", Value: "asked"}}}
	if s.number > 0 {
		request.Options = append(request.Options, recording.Setting{Key: "add", Value: "on"})
	}
	if m.mode == replay.On && (s.number > 0 || !strings.HasPrefix(m.options.Device, "cuda:")) {
		if err := m.refusal(ctx, parsed); err != nil {
			return err
		}
	}
	if request.Recording, request.Weights, err = m.share(ctx, r); err != nil {
		return err
	}
	loaded, err := m.plugin.Load(ctx, request)
	defer func() {
		if err != nil && s.number > 0 { // Load forgets the banks that there were
			m.shapes = m.shapes[:s.number]
			err = errors.Join(err, m.prepare(ctx))
		}
	}()
	if err != nil {
		return err
	}
	said, err := m.plugin.Describe(ctx)
	if err != nil {
		return err
	}
	s.support = m.decide(parsed, said.Environment)
	if err := s.support.Err(); err != nil {
		if m.mode == replay.On {
			return err
		}
		if m.mode == replay.Auto {
			m.log(s.support.Line())
		}
	}
	s.inputs, s.outputs = loaded.Inputs, loaded.Outputs
	if s.in, s.from, err = m.plugin.Memory().AllocBank(ctx, s.inputs); err != nil {
		return err
	}
	if s.out, s.to, err = m.plugin.Memory().AllocBank(ctx, s.outputs); err != nil {
		return err
	}
	s.graph = m.graphs.Add(s, replay.ShapeOf(s.inputs, m.options.Device))
	s.graph.Refusal = s.support.Err()
	m.shapes = append(m.shapes, s)
	return m.prepare(ctx)
}

// refusal says before a recording is loaded why its graph may not be replayed. The plugin would go on choosing one that was loaded.
func (m *Model) refusal(ctx context.Context, r *recording.Recording) error {
	var said []recording.Setting
	if len(m.shapes) > 0 { // else no device is open, and none need be
		d, err := m.plugin.Describe(ctx)
		if err != nil {
			return err
		}
		said = d.Environment
	}
	return m.decide(r, said).Err()
}

// share copies a recording to where the plugin sees it. The one before is overwritten, if there is room: it has been loaded.
func (m *Model) share(ctx context.Context, r Recording) (file, weights host.Region, err error) {
	need := int64(len(r.File)) + int64(len(r.Weights)) + 2*arm.Alignment
	if m.loading.Bytes() < need {
		region, memory, err := m.plugin.Memory().Alloc(ctx, need+need/8) // the next one is as large, or nearly
		if err != nil {
			return file, weights, err
		}
		m.loading = arm.NewRoom(region, memory)
	}
	m.loading.Empty()
	return m.loading.Hold(r.File), m.loading.Hold(r.Weights), nil
}

// decide asks for the flag of a recording. The plugin's word counts for the machine, not for itself.
func (m *Model) decide(r *recording.Recording, said []recording.Setting) certificate.Support {
	h := &r.Header
	a := certificate.Asked{
		Cell:    certificate.Cell{Family: h.Family, Size: h.Size, Task: h.Task, ImgSize: h.ImgSize, Batch: h.Batch, Mode: h.Mode, Precision: h.Precision},
		Profile: h.Profile, Recording: r.Digest, Device: m.options.Device, Environment: map[string]string{},
	}
	for _, s := range said {
		a.Environment[s.Key] = s.Value
	}
	a.Environment["torch"], a.Environment["torch_revision"] = torchOf(a.Environment["cudnn.path"])
	a.Environment[certificate.EngineKey] = m.build
	return certificate.Ask(a, m.options.Certificates)
}

var torchLine = regexp.MustCompile(`(?m)^(__version__|git_version) = '([^']*)'`)

// torchOf finds the PyTorch that a library belongs to, by its path: certificates are bound to its version.
func torchOf(library string) (version, revision string) {
	for folder := filepath.Dir(library); library != "" && folder != filepath.Dir(folder); folder = filepath.Dir(folder) {
		text, err := os.ReadFile(filepath.Join(folder, "torch", "version.py"))
		if err != nil {
			continue
		}
		for _, found := range torchLine.FindAllStringSubmatch(string(text), -1) {
			if found[1] == "git_version" {
				revision = found[2]
			} else {
				version = found[2]
			}
		}
		return version, revision
	}
	return "", ""
}

// prepare fixes the banks of some shapes, or of all, and captures those of some.
func (m *Model) prepare(ctx context.Context, capture ...*shape) error {
	request := host.PrepareRequest{CUDAGraph: len(capture) > 0}
	of := m.shapes
	if len(capture) > 0 {
		of = capture
	}
	for _, s := range of {
		request.Inputs, request.Outputs = append(request.Inputs, s.in), append(request.Outputs, s.out)
	}
	_, err := m.plugin.Prepare(ctx, request)
	return err
}

// Inputs are those of the recording that was loaded first, in the order in which Predict takes them.
func (m *Model) Inputs() []tensor.Spec { return m.shapes[0].inputs }

// Outputs are those of the recording that was loaded first.
func (m *Model) Outputs() []tensor.Spec { return m.shapes[0].outputs }

// Input is an array as Predict takes it: row-major without gaps, little-endian.
type Input struct {
	Sizes []int64 // as 1, 3, 640, 640: batch, channels, height, width
	DType tensor.DType
	Data  []byte // as many as sizes and type say
}

// Predict runs one step of the recording whose inputs have these shapes and types, in its order. It gives the bytes of each output
// by name, row-major and little-endian; they are valid until the next step, and until Close. Where no recording takes such inputs
// the problem is NO_RECORDING.
func (m *Model) Predict(ctx context.Context, inputs ...Input) (map[string][]byte, error) {
	s, err := m.fit(inputs)
	if err != nil {
		return nil, err
	}
	for i, in := range inputs {
		copy(s.from[i], in.Data)
	}
	s.ctx = ctx
	err = s.graph.Launch()
	s.ctx = nil
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(s.outputs))
	for i, spec := range s.outputs {
		out[spec.Name] = s.to[i]
	}
	return out, nil
}

func (m *Model) fit(inputs []Input) (*shape, error) {
	for _, s := range m.shapes {
		if slices.EqualFunc(inputs, s.inputs, func(in Input, spec tensor.Spec) bool {
			return in.DType == spec.DType && slices.Equal(in.Sizes, spec.Sizes) && int64(len(in.Data)) == spec.Bytes()
		}) {
			return s, nil
		}
	}
	var have []string
	for _, s := range m.shapes {
		for _, spec := range s.inputs {
			have = append(have, fmt.Sprintf("%s %s%v", spec.Name, spec.DType, spec.Sizes))
		}
	}
	return nil, diag.New("NO_RECORDING", "inputs", "no recording takes inputs of these types and shapes; there are %s", strings.Join(have, ", "))
}

// Run, Replay and the others are what a shape's graph asks for. Which of the two a step is the plugin knows.
func (s *shape) Run() error     { return s.model.plugin.Step(s.ctx, s.number, s.number) }
func (s *shape) Replay() error  { return s.Run() }
func (s *shape) Captured() bool { return s.captured }

func (s *shape) Capture() (nodes int, err error) {
	asked := s.model.prepare(s.ctx, s)
	if err := errors.Join(asked, s.model.prepare(s.ctx)); err != nil {
		return 0, err
	}
	s.captured = true
	stats, err := s.model.plugin.Stats(s.ctx)
	for _, n := range stats.NodesByKind {
		nodes += int(n)
	}
	for _, other := range s.model.shapes { // the plugin counts all graphs together
		if other != s && other.captured {
			nodes -= other.graph.Nodes()
		}
	}
	return nodes, err
}

func (s *shape) Release() error {
	s.captured = false
	return nil
}

// CaptureGraph captures the recordings of an image size, a batch and an element type of the first input now, whatever the mode
// is. What is 0 does not count.
func (m *Model) CaptureGraph(ctx context.Context, imgsz, batch int64, dtype tensor.DType) error {
	found := false
	for _, s := range m.shapes {
		if (imgsz != 0 && imgsz != s.header.ImgSize) || (batch != 0 && batch != s.header.Batch) ||
			(dtype != 0 && len(s.inputs) > 0 && dtype != s.inputs[0].DType) {
			continue
		}
		found = true
		s.ctx = ctx
		err := s.graph.Capture()
		s.ctx = nil
		if err != nil {
			return err
		}
	}
	if !found {
		return diag.New("NO_RECORDING", "", "no recording has that image size, batch and type")
	}
	return nil
}

// Info is what is known of a model's graphs.
type Info struct {
	replay.Info
	Family    string
	Supported bool // SUPPORTS_CUDA_GRAPH of all recordings
	Why       diag.Problems
}

// GraphInfo counts what ran.
func (m *Model) GraphInfo() Info {
	info := Info{Info: m.graphs.Info(), Family: m.shapes[0].header.Family, Supported: true}
	for _, s := range m.shapes {
		if !s.support.Supported() {
			info.Supported = false
			info.Why = append(info.Why, s.support.Problems()...)
		}
	}
	return info
}

// ReleaseGraphs drops all graphs, and forgets a capture that failed.
func (m *Model) ReleaseGraphs(ctx context.Context) error {
	_, err := m.plugin.Situate(ctx, host.SituateRequest{Situation: arm.Released})
	return errors.Join(err, m.graphs.Release())
}

// Close ends the plugin.
func (m *Model) Close() error {
	m.graphs.Unused()
	return m.plugin.Stop()
}
