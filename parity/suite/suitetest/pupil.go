package suitetest

import (
	"context"
	"errors"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
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

func newPupil(a *fakeArm) *pupil { return &pupil{fakeArm: a, batch: 4} }

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
	for i := range r.Values {
		r.Values[i].Sizes = []int64{batch, 3, 8, 8}
		r.Storages[i].Bytes = 4 * elements * batch
	}
	r.Storages[1].Name, r.Storages[1].Bytes = "fc.weight", 4*classes*3
	r.Values[1].Sizes, r.Values[1].Strides = pupilSizes("fc.weight"), []int64{3, 1}
	r.Operations[1].Name = "aten::add.Tensor"
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
	if p.TraceFails != nil {
		if err := p.TraceFails(); err != nil {
			return arm.TraceReply{}, err
		}
	}
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
