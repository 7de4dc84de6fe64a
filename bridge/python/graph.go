package samebits

import (
	"strings"

	"samebits/bridge/certificate"
	"samebits/bridge/recording"
	"samebits/bridge/replay"
	"samebits/native/device"
	"samebits/native/engine"
)

// The digests of the native plugins' programs that were built from the same sources as this extension, set by the linker
// (setup.py). Certificates are bound to them. Without them no certificate is for this engine.
var predictorBuild, trainerBuild string

// graphs are a model's or a trainer's, with what may be said of them.
type graphs struct {
	*replay.Graphs
	mode    replay.Mode
	family  string
	support certificate.Support
	said    []string // since it was last asked
}

// begin reads the mode and asks for the flag.
func begin(r *recording.Recording, d device.Device, o loadOptions) (*graphs, error) {
	mode, err := replay.ParseMode(o.Graph)
	if err != nil {
		return nil, as(codeInput, err)
	}
	return &graphs{mode: mode, family: r.Header.Family, support: supportOf(r, d, o)}, nil
}

// attach makes an engine's graphs obey. On the device host what is captured by hand is a launch list, and needs no leave.
func (g *graphs) attach(to *replay.Graphs, d device.Device) {
	g.Graphs = to
	to.Mode, to.Trial = g.mode, d.Name() == "host"
	to.Warn = func(line string) { g.said = append(g.said, line) }
}

// supportOf decides SUPPORTS_CUDA_GRAPH of a recording on a device of this process.
func supportOf(r *recording.Recording, d device.Device, o loadOptions) certificate.Support {
	h := &r.Header
	asked := certificate.Asked{
		Cell:    certificate.Cell{Family: h.Family, Size: h.Size, Task: h.Task, ImgSize: h.ImgSize, Batch: h.Batch, Mode: h.Mode, Precision: h.Precision},
		Profile: h.Profile, Recording: r.Digest, Device: d.Name(), Environment: map[string]string{},
	}
	for _, s := range d.Environment() {
		asked.Environment[s.Key] = s.Value
	}
	asked.Environment["torch"], asked.Environment["torch_revision"] = o.TorchVersion, o.TorchRevision
	asked.Environment[certificate.EngineKey] = buildOf(h.Mode)
	return certificate.Ask(asked, o.Certificates)
}

// buildOf is the digest of the plugin's program for a mode.
func buildOf(mode string) string {
	if mode == certificate.Train {
		return trainerBuild
	}
	return predictorBuild
}

// further asks for the flag of a recording that is loaded beside others: its own shape alone is refused without. The flag that
// is shown is of all.
func (g *graphs) further(to *replay.Graph, support certificate.Support) {
	if support.Supported() {
		return
	}
	to.Refusal = support.Err()
	if g.support.Supported() {
		g.support = support
	}
	if g.mode != replay.Off {
		g.Warn(support.Line())
	}
}

// line is what a log is told when a model is loaded that was to use graphs and cannot.
func (g *graphs) line() string {
	if g.mode == replay.Off {
		return ""
	}
	return g.support.Line()
}

// warning gives what was said since the last call.
func (g *graphs) warning() string {
	if len(g.said) == 0 {
		return ""
	}
	text := strings.Join(g.said, "; ")
	g.said = g.said[:0]
	return text
}

// info is what graph_info() of Python gives.
type info struct {
	replay.Info
	Family        string    `json:"family"`
	Supported     bool      `json:"supported"`
	Unsupported   []problem `json:"unsupported"` // why not
	Certificate   string    `json:"certificate"`
	Invalidations int64     `json:"invalidations"`
	Warning       string    `json:"warning"`
}

func (g *graphs) info(models []*engine.Model) info {
	i := info{Info: g.Info(), Family: g.family, Supported: g.support.Supported(), Unsupported: []problem{}, Certificate: g.support.File()}
	for _, p := range g.support.Problems() {
		i.Unsupported = append(i.Unsupported, problem(p))
	}
	for _, m := range models {
		i.Invalidations += m.Invalidations()
	}
	i.Warning = g.warning()
	return i
}

// graphed is content that has graphs.
type graphed interface {
	content
	captureNow(w wanted) error
	releaseNow() error
	graphInfo() info
}

// wanted says which shapes are to be captured.
type wanted struct {
	ImgSize int64  `json:"imgsz"`
	Batch   int64  `json:"batch"`
	DType   string `json:"dtype"`
}

// CaptureGraph captures a step of the shapes that are wanted now, as far as none is captured: a job that gives GraphInfo's result.
func CaptureGraph(ticket, number int64, call string) (result string, err error) {
	defer finish(&err)
	var w wanted
	if err := fromJSON(call, &w); err != nil {
		return "", err
	}
	return withGraph(ticket, number, func(g graphed) error { return g.captureNow(w) })
}

// ReleaseGraphs drops captured graphs: a job that gives GraphInfo's result.
func ReleaseGraphs(ticket, number int64) (result string, err error) {
	defer finish(&err)
	return withGraph(ticket, number, graphed.releaseNow)
}

// GraphInfo says how steps run: a job that gives an info.
func GraphInfo(ticket, number int64) (result string, err error) {
	defer finish(&err)
	return withGraph(ticket, number, func(graphed) error { return nil })
}

func withGraph(ticket, number int64, f func(g graphed) error) (string, error) {
	return run(ticket, func(*job) (result string, err error) {
		err = use(number, func(_ *object, g graphed) error {
			err := as(codeDevice, f(g))
			result = asJSON(g.graphInfo())
			return err
		})
		return result, err
	})
}

// refused is the error of who asks to predict by a graph where there is no flag.
func (g *graphs) refused(mode replay.Mode) error {
	if mode != replay.On {
		return nil
	}
	return as(codeUncertified, g.support.Err())
}

// lastWords says of graphs that were captured beforehand that no step replayed them.
func (g *graphs) lastWords() string {
	g.Unused()
	return g.warning()
}
