package suitetest

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
)

// Training holds the faults of the fakes in training. Each stands for one kind of mistake that a gate must see.
type Training struct {
	StaleHyper        string               // a graph keeps this hyperparameter of its capture; "all": every one
	HyperIgnored      string               // no arm looks at this hyperparameter
	TargetsIgnored    bool                 // no arm looks at the targets
	StaleBatch        bool                 // replays go on with the images of the capture
	WarmupMoves       bool                 // capturing moves a buffer
	AverageSkipped    bool                 // replays leave the average alone
	ZeroGradient      bool                 // a graph makes zeros of the gradient that a parameter does not get
	MomentumLost      bool                 // a restored run starts without momentum
	ForeignMomentum   bool                 // native writes checkpoints whose momentum is of another scale
	ShortPoisons      bool                 // a graph's steps after a short batch are off
	ShortPadded       bool                 // a graph takes a short batch for a full one
	GradientKept      bool                 // replays add to the gradient of the step before
	GradientUnwritten bool                 // replays leave the bank's gradient alone
	EagerMoves        bool                 // a fresh start in an old process is none
	RecordMoves       bool                 // recording moves a buffer
	NativeGradient    func(grad []float64) // what native changes in the gradient of a weight
	NativeOptimizer   bool                 // native's parameters are off, its gradients are not
}

// The fake model of training. Features are the means of the three channels; everything is rounded to single precision
// after each operation, in double precision it is not. It has a parameter of each group and one without a gradient.
const classes = 4

var pupilGroups = [][]string{{"bn.weight"}, {"fc.weight"}, {"fc.bias", "unused"}}

func pupilSizes(name string) []int64 {
	return map[string][]int64{"bn.weight": {3}, "fc.weight": {classes, 3}, "unused": {2}, "fc.bias": {classes},
		"bn.running_mean": {3}, "bn.num_batches_tracked": {}}[name]
}

var (
	pupilParameters = []string{"bn.weight", "fc.weight", "unused", "fc.bias"}
	pupilBuffers    = []string{"bn.running_mean", "bn.num_batches_tracked"}
)

const noGradient = "unused"

// pupil is a fake arm in training.
type pupil struct {
	*fakeArm
	batch   int64
	state   map[string][]float64 // param.X, buffer.X, momentum.X, ema.X, grad.X, loss
	started bool                 // momentum is there
	graph   bool
	caught  pupilInputs // at the capture
	short   bool        // a short batch was seen
	begun   int         // how often a run began
}

type pupilInputs struct {
	means   [3]float64
	counts  [classes]float64
	images  int64
	lr, wd  []float64
	mu, ema float64
}

func newPupil(a *fakeArm) *pupil { return &pupil{fakeArm: a, batch: 4} }

func (p *pupil) round(x float64) float64 {
	if p.double {
		return x
	}
	return float64(float32(x))
}

func (p *pupil) Build(_ context.Context, r arm.BuildRequest) (arm.BuildReply, error) {
	p.name, p.double, p.onGPU, p.precision, p.batch = r.Arm, r.Precision == "fp64", r.Device != "cpu", r.Precision, r.Batch
	p.fresh()
	return arm.BuildReply{Inputs: p.inputSpecs(), WeightsLength: int64(len(p.weightsFile())), Task: "classify", Size: "s", ImgSize: 8,
		Outputs: p.outputSpecs(), CheckpointLength: int64(len(p.checkpointFile()))}, nil
}

func (p *pupil) inputSpecs() []tensor.Spec {
	of := func(name string, d tensor.DType, sizes ...int64) tensor.Spec {
		return tensor.Spec{Name: name, DType: d, Sizes: sizes}
	}
	groups := int64(len(pupilGroups))
	return []tensor.Spec{of("images", tensor.Float32, p.batch, 3, 8, 8), of("targets", tensor.Int64, p.batch),
		of("hyper.lr", tensor.Float64, groups), of("hyper.weight_decay", tensor.Float64, groups),
		of("hyper.momentum", tensor.Float64, 1), of("hyper.ema_decay", tensor.Float64, 1)}
}

// hasGradient reports whether the arm makes a gradient for a parameter.
func (p *pupil) hasGradient(name string) bool {
	return name != noGradient || p.ZeroGradient && strings.HasSuffix(p.name, "graph")
}

func (p *pupil) outputSpecs() []tensor.Spec {
	specs := []tensor.Spec{p.spec("loss", nil)}
	add := func(prefix string, names []string) {
		for _, name := range names {
			if prefix == "grad." || prefix == "momentum." {
				if !p.hasGradient(name) {
					continue
				}
			}
			specs = append(specs, p.spec(prefix+name, pupilSizes(name)))
		}
	}
	add("grad.", pupilParameters)
	add("param.", pupilParameters)
	add("buffer.", pupilBuffers)
	add("momentum.", pupilParameters)
	add("ema.", append(slices.Clone(pupilParameters), "bn.running_mean"))
	return specs
}

func (p *pupil) spec(name string, sizes []int64) tensor.Spec {
	d := tensor.Float32
	switch {
	case strings.HasSuffix(name, "tracked"):
		d = tensor.Int64
	case p.double:
		d = tensor.Float64
	}
	return tensor.Spec{Name: name, DType: d, Sizes: append([]int64{}, sizes...)}
}

// bytes gives a tensor as a bank holds it.
func (p *pupil) bytes(spec tensor.Spec) []byte {
	var b []byte
	for _, x := range p.state[spec.Name] {
		switch spec.DType {
		case tensor.Int64:
			b = binary.LittleEndian.AppendUint64(b, uint64(int64(x)))
		case tensor.Float64:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		default:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
		}
	}
	return b
}

func numbers(spec tensor.Spec, data []byte) []float64 {
	values := make([]float64, spec.Numel())
	for i := range values {
		switch spec.DType {
		case tensor.Int64:
			values[i] = float64(int64(binary.LittleEndian.Uint64(data[8*i:])))
		case tensor.Float64:
			values[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		default:
			values[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		}
	}
	return values
}

// fresh sets the state to where a run begins.
func (p *pupil) fresh() {
	p.state, p.started, p.short = map[string][]float64{"loss": {0}}, false, false
	for _, name := range append(slices.Clone(pupilParameters), pupilBuffers...) {
		values := make([]float64, tensor.Numel(pupilSizes(name)))
		kind := "buffer."
		if slices.Contains(pupilParameters, name) {
			kind = "param."
			for i := range values {
				values[i] = float64(float32(0.3 + float64(i%5)/7 + float64(len(name))/11))
			}
			p.state["grad."+name], p.state["momentum."+name] = make([]float64, len(values)), make([]float64, len(values))
		}
		p.state[kind+name] = values
		p.state["ema."+name] = slices.Clone(values)
	}
}

func (p *pupil) file(specs []tensor.Spec, name func(string) string, metadata map[string]string) []byte {
	var tensors []safetensors.Tensor
	for _, spec := range specs {
		data := p.bytes(spec)
		spec.Name = name(spec.Name)
		tensors = append(tensors, safetensors.Tensor{Spec: spec, Data: data})
	}
	file, err := safetensors.Encode(tensors, metadata)
	if err != nil {
		panic(err)
	}
	return file
}

func (p *pupil) kinds(prefixes ...string) []tensor.Spec {
	return slices.DeleteFunc(p.outputSpecs(), func(s tensor.Spec) bool {
		return !slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s.Name, prefix) })
	})
}

func (p *pupil) weightsFile() []byte {
	return p.file(p.kinds("param.", "buffer."), func(name string) string {
		_, plain, _ := strings.Cut(name, ".")
		return plain
	}, nil)
}

func (p *pupil) checkpointFile() []byte {
	return p.file(p.kinds("param.", "buffer.", "momentum.", "ema."), func(name string) string { return name },
		map[string]string{"format": "samebits-checkpoint"})
}

func (p *pupil) Record(_ context.Context, inputs arm.Bank) (arm.RecordReply, error) {
	p.steps++
	alpha := int64(1)
	if p.ScalarFromStep {
		alpha = int64(p.steps)
	}
	if p.RecordMoves {
		p.state["buffer.bn.running_mean"][1]++
	}
	r := pupilRecording(alpha, inputs[0].Sizes[0])
	r.Header.Precision = p.precision
	if p.onGPU {
		r.Header.DeviceType = "cuda"
	}
	var err error
	if p.recorded, err = recording.Encode(r); err != nil {
		return arm.RecordReply{}, err
	}
	return arm.RecordReply{RecordingLength: int64(len(p.recorded)), WeightsLength: int64(len(p.weightsFile())), Outputs: p.kinds("loss", "grad.")}, nil
}

// pupilRecording names a mean and a loss: enough for a trace.
func pupilRecording(alpha, batch int64) *recording.Recording {
	r := fakeRecording(alpha)
	r.Header.Mode, r.Header.Batch = "train", batch
	r.Header.ProfileSettings = []recording.Setting{
		{Key: "train.dampening", Value: "0"}, {Key: "train.ema", Value: "true"},
		{Key: "train.groups", Value: `[["bn.weight"],["fc.weight"],["fc.bias","unused"]]`},
		{Key: "train.nesterov", Value: "true"}, {Key: "train.optimizer", Value: "sgd"}}
	r.Storages[1].Name = "fc.weight"
	for i := range r.Values {
		r.Values[i].Sizes = []int64{batch, 3, 8, 8}
		r.Storages[i].Bytes = 4 * elements * batch
	}
	r.Outputs = []recording.Named{{Name: "loss", Value: 2}, {Name: "grad.fc.weight", Value: 3}}
	return r
}

func (p *pupil) Export(_ context.Context, r arm.ExportRequest) error {
	to := p.at(r.Region)
	switch r.What {
	case arm.TheRecording:
		copy(to, p.recorded)
	case arm.TheWeights:
		copy(to, p.weightsFile())
	case arm.TheCheckpoint:
		p.foreign(2)
		copy(to, p.checkpointFile())
		p.foreign(0.5)
	}
	return nil
}

func (p *pupil) Load(_ context.Context, r arm.LoadRequest) (arm.LoadReply, error) {
	if p.kind == "native" {
		p.name, p.onGPU = r.Arm, r.Device != "host"
		if p.Refuses != nil {
			return arm.LoadReply{}, p.Refuses
		}
		rec, err := recording.Decode(p.at(r.Recording))
		if err != nil {
			return arm.LoadReply{}, err
		}
		if len(r.Options) > 0 { // add=on
			return arm.LoadReply{}, nil
		}
		p.batch = rec.Header.Batch
	}
	p.fresh()
	if err := p.restore(r.Weights, func(name string) string {
		if slices.Contains(pupilParameters, name) {
			return "param." + name
		}
		return "buffer." + name
	}); err != nil {
		return arm.LoadReply{}, err
	}
	if p.begun++; p.EagerMoves {
		p.state["buffer.bn.running_mean"][0] = float64(p.begun)
	}
	if r.Checkpoint.Length > 0 {
		if err := p.restore(r.Checkpoint, func(name string) string { return name }); err != nil {
			return arm.LoadReply{}, err
		}
		p.started = !p.MomentumLost
		p.foreign(0.5)
	}
	p.stats = arm.Stats{}
	return arm.LoadReply{Inputs: p.inputSpecs(), Outputs: p.outputSpecs(), CheckpointLength: int64(len(p.checkpointFile()))}, nil
}

// foreign makes the momentum of native's checkpoints native's alone.
func (p *pupil) foreign(factor float64) {
	if p.ForeignMomentum && p.kind == "native" {
		p.state["momentum.fc.weight"][0] *= factor
	}
}

func (p *pupil) restore(r arm.Region, name func(string) string) error {
	file, err := safetensors.Decode(p.at(r))
	if err != nil {
		return err
	}
	for _, t := range file.Tensors {
		p.state[name(t.Name)] = numbers(t.Spec, t.Data)
	}
	return nil
}

func (p *pupil) Prepare(_ context.Context, r arm.PrepareRequest) (arm.PrepareReply, error) {
	p.banks, p.graph = r, r.CUDAGraph
	if !r.CUDAGraph || p.NotCaptured {
		return arm.PrepareReply{}, nil
	}
	p.stats.Captures += int64(len(r.Inputs))
	p.caught = p.read(r.Inputs[0])
	if p.WarmupMoves {
		p.state["buffer.bn.num_batches_tracked"][0]++
	}
	return arm.PrepareReply{Captured: true, Nodes: 2}, nil
}

// read takes what a step looks at out of a bank.
func (p *pupil) read(bank arm.Bank) pupilInputs {
	var in pupilInputs
	in.images = bank[0].Sizes[0]
	images, targets := numbers(bank[0].Spec, p.at(bank[0].Region)), numbers(bank[1].Spec, p.at(bank[1].Region))
	for c := range 3 {
		sum := 0.0
		for n := range int(in.images) {
			for i := range 64 {
				sum = p.round(sum + images[(3*n+c)*64+i])
			}
		}
		in.means[c] = p.round(sum / float64(64*in.images))
	}
	for _, target := range targets {
		if !p.TargetsIgnored {
			in.counts[int(target)] += 1 / float64(in.images)
		}
	}
	hyper := func(i int) []float64 { return numbers(bank[i].Spec, p.at(bank[i].Region)) }
	in.lr, in.wd, in.mu, in.ema = hyper(2), hyper(3), hyper(4)[0], hyper(5)[0]
	return in
}

func (p *pupil) Step(_ context.Context, input, output int) error {
	if p.kind == "native" && p.Crash != nil {
		return p.Crash
	}
	p.steps++
	in := p.read(p.banks.Inputs[input])
	if p.graph {
		p.countReplay()
		p.spoilInputs(&in)
	}
	p.ignore(&in)
	p.backward(in, false)
	p.spoil(in)
	p.optimize(in)
	p.write(output)
	return nil
}

func (p *pupil) spoilInputs(in *pupilInputs) {
	if p.StaleBatch {
		in.means = p.caught.means
	}
	if p.ShortPadded && in.images < p.caught.images {
		in.means[0] = p.round(in.means[0] * float64(in.images) / float64(p.caught.images))
	}
	for name, stale := range map[string]func(){
		"lr":           func() { in.lr = p.caught.lr },
		"weight_decay": func() { in.wd = p.caught.wd },
		"momentum":     func() { in.mu = p.caught.mu },
		"ema_decay":    func() { in.ema = p.caught.ema },
	} {
		if p.StaleHyper == name || p.StaleHyper == "all" {
			stale()
		}
	}
}

func (p *pupil) ignore(in *pupilInputs) {
	switch p.HyperIgnored {
	case "lr":
		in.lr = []float64{0.1, 0.1, 0.1}
	case "weight_decay":
		in.wd = []float64{0, 0, 0}
	case "momentum":
		in.mu = 0.5
	case "ema_decay":
		in.ema = 0.5
	}
}

// backward makes loss and gradients, and moves the buffers.
func (p *pupil) backward(in pupilInputs, traced bool) {
	r, s := p.round, p.state
	loss := 0.0
	for k := range classes {
		logit := s["param.fc.bias"][k]
		for c := range 3 {
			logit = r(logit + r(s["param.fc.weight"][3*k+c]*r(s["param.bn.weight"][c]*in.means[c])))
		}
		gap := r(logit - in.counts[k])
		loss = r(loss + r(gap*gap))
		s["grad.fc.bias"][k] = r(2 * gap)
		for c := range 3 {
			s["grad.fc.weight"][3*k+c] = r(r(2*gap) * r(s["param.bn.weight"][c]*in.means[c]))
		}
	}
	for c := range 3 {
		sum := 0.0
		for k := range classes {
			sum = r(sum + r(s["grad.fc.bias"][k]*r(s["param.fc.weight"][3*k+c]*in.means[c])))
		}
		s["grad.bn.weight"][c] = sum
		s["buffer.bn.running_mean"][c] = r(r(0.9*s["buffer.bn.running_mean"][c]) + r(0.1*in.means[c]))
	}
	s["buffer.bn.num_batches_tracked"][0]++
	s["loss"][0] = loss
	if p.kind == "native" && p.NativeGradient != nil && (!traced || p.NativeTrace) {
		p.NativeGradient(s["grad.fc.weight"])
	}
}

// spoil makes the mistakes that are no inputs'.
func (p *pupil) spoil(in pupilInputs) {
	s := p.state
	switch {
	case p.Noise && !p.graph && p.kind == "reference" && !p.double:
		s["loss"][0] += float64(p.process)
	case p.graph && p.GradientKept:
		for i := range s["grad.fc.bias"] {
			s["grad.fc.bias"][i] = p.round(s["grad.fc.bias"][i] + p.caught.counts[i%classes])
			p.caught.counts[i%classes] = s["grad.fc.bias"][i]
		}
	case p.graph && p.ReadsPoison && p.poisoned:
		s["loss"][0] = math.NaN()
	case p.graph && p.ReadsChurn && p.churned:
		s["loss"][0]++
	}
	if p.graph && p.ShortPoisons && p.short {
		s["grad.bn.weight"][2] = p.round(s["grad.bn.weight"][2] * 1.5)
	}
	p.short = p.short || len(p.banks.Inputs) > 1 && in.images < p.banks.Inputs[0][0].Sizes[0]
}

// optimize is SGD with Nesterov momentum, and the average.
func (p *pupil) optimize(in pupilInputs) {
	r := p.round
	for g, names := range pupilGroups {
		for _, name := range names {
			if !p.hasGradient(name) {
				continue
			}
			value, grad, momentum := p.state["param."+name], p.state["grad."+name], p.state["momentum."+name]
			for i := range value {
				d := r(grad[i] + r(in.wd[g]*value[i]))
				if p.started {
					momentum[i] = r(r(momentum[i]*in.mu) + d)
				} else {
					momentum[i] = d
				}
				value[i] = r(value[i] - r(in.lr[g]*r(d+r(in.mu*momentum[i]))))
			}
		}
	}
	p.started = true
	if p.kind == "native" && p.NativeOptimizer {
		p.state["param.fc.bias"][1] = float64(math.Nextafter32(float32(p.state["param.fc.bias"][1]), 9))
	}
	if p.graph && p.AverageSkipped {
		return
	}
	for _, spec := range p.kinds("ema.") {
		plain := strings.TrimPrefix(spec.Name, "ema.")
		from := p.state["param."+plain]
		if from == nil {
			from = p.state["buffer."+plain]
		}
		for i, x := range p.state[spec.Name] {
			p.state[spec.Name][i] = r(r(x*in.ema) + r((1-in.ema)*from[i]))
		}
	}
}

func (p *pupil) write(bank int) {
	banks := []int{bank}
	if p.graph && p.LeavesBankBehind {
		banks = []int{0, 1}
	}
	for _, b := range banks {
		for _, placed := range p.banks.Outputs[b] {
			if p.graph && p.GradientUnwritten && placed.Name == "grad.fc.weight" {
				continue
			}
			copy(p.at(placed.Region), p.bytes(placed.Spec))
		}
	}
}

// Trace shows the loss and a gradient, without moving the state.
func (p *pupil) Trace(_ context.Context, r arm.TraceRequest) (arm.TraceReply, error) {
	if len(p.banks.Inputs) <= r.InputBank {
		return arm.TraceReply{}, errors.New("trace of no bank")
	}
	kept := map[string][]float64{}
	for name, values := range p.state {
		kept[name] = slices.Clone(values)
	}
	defer func() { p.state = kept }()
	in := p.read(p.banks.Inputs[r.InputBank])
	p.ignore(&in)
	p.backward(in, true)
	var reply arm.TraceReply
	for i, name := range []string{"loss", "grad.fc.weight"} {
		// As large as the recording says: the rest is nothing.
		spec := tensor.Spec{DType: tensor.Float32, Sizes: []int64{p.batch, 3, 8, 8}}
		data := make([]byte, spec.Bytes())
		copy(data, p.bytes(p.spec(name, nil)))
		reply.Operations = append(reply.Operations, arm.OperationTrace{Operation: i, Digests: []string{digest.Tensor(spec, data)}})
		if r.Want != nil && r.Want.Operation == i {
			copy(p.at(r.Want.Region), data)
		}
	}
	return reply, nil
}
