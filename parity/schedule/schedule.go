// Package schedule computes the hyperparameters of every training step, in double precision, in the order of LibreYOLO's own
// Python (libreyolo.training: WarmupCosineScheduler, ModelEMA).
//
// They are computed once, here, and all arms are handed the same bits. So it does not matter that Go's exponential and
// cosine may differ from C's in the last place: that is the run of another, equally good schedule.
package schedule

import (
	"encoding/binary"
	"math"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

// Recipe is what a training run is made of. Epochs of LibreYOLO are counted in steps.
type Recipe struct {
	Steps        int     `json:"steps"`
	LR           float64 `json:"lr"`            // at the end of the warm-up
	WarmupSteps  int     `json:"warmup_steps"`  // of quadratic growth from 0
	PlateauSteps int     `json:"plateau_steps"` // at the end, at LR * MinLRRatio
	MinLRRatio   float64 `json:"min_lr_ratio"`
	Momentum     float64 `json:"momentum"`
	WeightDecay  float64 `json:"weight_decay"` // of weights that belong to no normalisation
	EMADecay     float64 `json:"ema_decay"`
	EMATau       float64 `json:"ema_tau"` // steps over which the decay of the average grows
}

// Default is LibreYOLO's SGD (TrainConfig) with the weight decay and the schedule of its classifiers, in so many steps.
func Default(steps int) Recipe {
	return Recipe{Steps: steps, LR: 0.01, WarmupSteps: steps / 4, MinLRRatio: 0.01, Momentum: 0.937, WeightDecay: 1e-4,
		EMADecay: 0.9998, EMATau: 2000}
}

// Check finds what no run can be made of.
func (r Recipe) Check() error {
	var ps diag.Problems
	if r.Steps < MinSteps || r.Steps > MaxSteps {
		ps.Add("BAD_SCHEDULE", "steps", "%d steps; %d to %d are taken", r.Steps, MinSteps, MaxSteps)
	}
	most := max(r.Steps, 1)
	if r.WarmupSteps < 0 || r.PlateauSteps < 0 || r.WarmupSteps >= most-min(r.PlateauSteps, most) { // a sum might overflow
		ps.Add("BAD_SCHEDULE", "warmup_steps", "%d steps of warm-up and %d of plateau do not fit into %d", r.WarmupSteps, r.PlateauSteps, r.Steps)
	}
	for _, c := range []struct {
		name     string
		value    float64
		low, top float64
	}{
		{"lr", r.LR, 0, math.MaxFloat32}, {"min_lr_ratio", r.MinLRRatio, 0, 1}, {"weight_decay", r.WeightDecay, 0, math.MaxFloat32},
		{"ema_decay", r.EMADecay, 0, 1}, {"ema_tau", r.EMATau, 0, math.MaxFloat64},
	} {
		if !(c.value >= c.low && c.value <= c.top) { // also NaN
			ps.Add("BAD_SCHEDULE", c.name, "%v does not lie in %v to %v", c.value, c.low, c.top)
		}
	}
	// Without momentum PyTorch keeps no buffer: another optimizer.
	if !(r.Momentum > 0 && r.Momentum < 1) {
		ps.Add("BAD_SCHEDULE", "momentum", "%v does not lie between 0 and 1", r.Momentum)
	}
	return ps.Err()
}

// MinSteps is the length of the shortest run that can be broken in the middle and replayed often enough.
const MinSteps = 6

// MaxSteps bounds a run: each step's hyperparameters and history are kept.
const MaxSteps = 100_000

// Hyper are the hyperparameters of one step.
type Hyper struct {
	LR, WeightDecay []float64 // by parameter group
	Momentum        float64
	EMADecay        float64
}

// At gives the hyperparameters of a step, counted from 1. decayed says for each parameter group whether weights decay.
func (r Recipe) At(step int, decayed []bool) Hyper {
	h := Hyper{LR: make([]float64, len(decayed)), WeightDecay: make([]float64, len(decayed)),
		Momentum: r.Momentum, EMADecay: r.emaDecay(step)}
	lr := r.lr(step - 1) // the trainer's counter starts at 0
	for g, decays := range decayed {
		h.LR[g] = lr
		if decays {
			h.WeightDecay[g] = r.WeightDecay
		}
	}
	return h
}

// lr is WarmupCosineScheduler.update_lr. The conversions forbid the compiler to fuse a product with a sum.
func (r Recipe) lr(iteration int) float64 {
	minimum := r.LR * r.MinLRRatio
	switch {
	case r.WarmupSteps > 0 && iteration <= r.WarmupSteps:
		part := float64(iteration) / float64(r.WarmupSteps)
		return float64(r.LR * float64(part*part))
	case iteration >= r.Steps-r.PlateauSteps:
		return minimum
	}
	angle := float64(math.Pi*float64(iteration-r.WarmupSteps)) / float64(r.Steps-r.WarmupSteps-r.PlateauSteps)
	return minimum + float64(float64(0.5*float64(r.LR-minimum))*float64(1+math.Cos(angle)))
}

// emaDecay is ModelEMA's decay at its update of that number.
func (r Recipe) emaDecay(update int) float64 {
	if r.EMATau <= 0 {
		return r.EMADecay
	}
	return r.EMADecay * float64(1-math.Exp(-float64(update)/r.EMATau))
}

// ChangingSteps is how many steps Changing has.
const ChangingSteps = 4

// Changing gives the hyperparameters of a run in which each of them is another at every step, up and down, in every group;
// weight decay is 0 at a step, where PyTorch leaves its operation out.
func Changing(step, groups int) Hyper {
	i := (step - 1) % ChangingSteps
	h := Hyper{Momentum: [ChangingSteps]float64{0.9, 0.5, 0.95, 0.3}[i], EMADecay: [ChangingSteps]float64{0.9, 0.5, 0.99, 0.1}[i]}
	for g := range groups {
		h.LR = append(h.LR, [ChangingSteps]float64{0.01, 0.03, 0.002, 0.02}[i]*float64(g+1))
		h.WeightDecay = append(h.WeightDecay, [ChangingSteps]float64{0.001, 0.02, 0, 0.005}[i]*float64(g+1))
	}
	return h
}

// Names lists the hyperparameters as the wire names them, without "hyper.".
func Names() []string { return []string{"lr", "weight_decay", "momentum", "ema_decay"} }

// With gives h with one hyperparameter taken from other.
func (h Hyper) With(name string, other Hyper) Hyper {
	switch name {
	case "lr":
		h.LR = other.LR
	case "weight_decay":
		h.WeightDecay = other.WeightDecay
	case "momentum":
		h.Momentum = other.Momentum
	case "ema_decay":
		h.EMADecay = other.EMADecay
	}
	return h
}

// Prefix stands before a hyperparameter's name in a bank.
const Prefix = "hyper."

// Specs are the inputs that hold hyperparameters, in the order of the wire.
func Specs(groups int) []tensor.Spec {
	of := func(name string, n int) tensor.Spec {
		return tensor.Spec{Name: Prefix + name, DType: tensor.Float64, Sizes: []int64{int64(n)}}
	}
	return []tensor.Spec{of("lr", groups), of("weight_decay", groups), of("momentum", 1), of("ema_decay", 1)}
}

// Fill writes the hyperparameter that spec names over dst.
func (h Hyper) Fill(spec tensor.Spec, dst []byte) error {
	values, known := map[string][]float64{
		Prefix + "lr": h.LR, Prefix + "weight_decay": h.WeightDecay, Prefix + "momentum": {h.Momentum}, Prefix + "ema_decay": {h.EMADecay},
	}[spec.Name]
	path := "inputs/" + spec.Name
	switch {
	case !known:
		return diag.New("UNSUPPORTED_INPUT", path, "no such hyperparameter")
	case spec.DType != tensor.Float64 || spec.Numel() != int64(len(values)) || len(dst) != 8*len(values):
		return diag.New("UNSUPPORTED_INPUT", path, "%v%v in %d bytes for %d numbers of float64", spec.DType, spec.Sizes, len(dst), len(values))
	}
	for i, v := range values {
		binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(v))
	}
	return nil
}
