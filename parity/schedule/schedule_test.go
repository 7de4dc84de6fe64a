package schedule

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

// near reports whether two numbers are as close as a cosine or an exponential of another last place leaves them, for numbers
// that come from a sum with 1.
func near(a, b, scale float64) bool { return math.Abs(a-b) <= math.Ldexp(scale, -52) }

// What WarmupCosineScheduler and ModelEMA of libreyolo 1.6.0 give in Python.
func TestAgainstPython(t *testing.T) {
	for _, c := range []struct {
		name   string
		recipe Recipe
		want   []float64
	}{
		{"lr=0.01, iters_per_epoch=5, total_epochs=4, warmup_epochs=1, plateau_epochs=0, min_lr_ratio=0.01", Default(20), []float64{
			0x0.0p+0, 0x1.a36e2eb1c432ep-12, 0x1.a36e2eb1c432ep-10, 0x1.d7dbf487fcb92p-9, 0x1.a36e2eb1c432ep-8, 0x1.47ae147ae147bp-7,
			0x1.4422b08356554p-7, 0x1.39a82ce2c13f0p-7, 0x1.28b3c6b748af3p-7, 0x1.1203303f8f7e0p-7, 0x1.ed288ce703afdp-8,
			0x1.af33f15fd27ecp-8, 0x1.6cddbd2f35efep-8, 0x1.290c248153b07p-8, 0x1.cd6be0a16e431p-9, 0x1.5182a9930be11p-9,
			0x1.c78e04c5aa915p-10, 0x1.12095107e1079p-10, 0x1.14cc3f583910dp-11, 0x1.b490153b9eb37p-13}},
		{"lr=0.01, iters_per_epoch=1, total_epochs=7, warmup_epochs=0, plateau_epochs=2, min_lr_ratio=0.05",
			Recipe{Steps: 7, LR: 0.01, PlateauSteps: 2, MinLRRatio: 0.05}, []float64{
				0x1.47ae147ae147bp-7, 0x1.29f4314ad2ba8p-7, 0x1.b8427f41ada62p-8, 0x1.efbc8ab3f07a7p-9, 0x1.70e1881801b99p-10,
				0x1.0624dd2f1a9fcp-11, 0x1.0624dd2f1a9fcp-11}},
	} {
		for i, want := range c.want {
			if got := c.recipe.At(i+1, []bool{true}).LR[0]; !near(got, want, c.recipe.LR) {
				t.Errorf("%s: step %d: %x instead of %x", c.name, i+1, got, want)
			}
		}
	}
	for step, want := range map[int]float64{1: 0x1.0606abd144beep-11, 2: 0x1.05f5e7db075a0p-10, 20: 0x1.45fb59c132a8cp-7} {
		if got := Default(20).At(step, nil).EMADecay; !near(got, want, 1) {
			t.Errorf("decay of the average at step %d: %x instead of %x", step, got, want)
		}
	}
	if got := (Recipe{EMADecay: 0.5}).At(3, nil).EMADecay; got != 0.5 {
		t.Errorf("without tau the decay is %v", got)
	}
}

func TestWeightDecayByGroup(t *testing.T) {
	h := Default(20).At(7, []bool{false, true, false})
	if !slices.Equal(h.WeightDecay, []float64{0, 1e-4, 0}) || h.LR[0] != h.LR[2] || h.LR[0] == 0 {
		t.Errorf("%+v", h)
	}
}

// In a changing run no hyperparameter keeps its value from a step to the next, in any group.
func TestChanging(t *testing.T) {
	for step := 2; step <= ChangingSteps; step++ {
		before, now := Changing(step-1, 3), Changing(step, 3)
		for g := range 3 {
			if before.LR[g] == now.LR[g] || before.WeightDecay[g] == now.WeightDecay[g] {
				t.Errorf("group %d at step %d: %+v, then %+v", g, step, before, now)
			}
		}
		if before.Momentum == now.Momentum || before.EMADecay == now.EMADecay {
			t.Errorf("step %d: %+v, then %+v", step, before, now)
		}
	}
	first, last := Changing(1, 2), Changing(4, 2)
	for _, name := range Names() {
		frozen := last.With(name, first)
		for _, spec := range Specs(2) {
			a, b := make([]byte, spec.Bytes()), make([]byte, spec.Bytes())
			if err := last.Fill(spec, a); err != nil {
				t.Fatal(err)
			}
			if err := frozen.Fill(spec, b); err != nil {
				t.Fatal(err)
			}
			if same := slices.Equal(a, b); same != (spec.Name != Prefix+name) {
				t.Errorf("with %s frozen, %s: same is %v", name, spec.Name, same)
			}
		}
	}
}

func TestFill(t *testing.T) {
	h := Default(20).At(2, []bool{true})
	dst := make([]byte, 8)
	if err := h.Fill(Specs(1)[2], dst); err != nil || math.Float64frombits(binary.LittleEndian.Uint64(dst)) != 0.937 {
		t.Errorf("momentum %x, %v", dst, err)
	}
	for name, spec := range map[string]tensor.Spec{
		"unknown":       {Name: "hyper.beta", DType: tensor.Float64, Sizes: []int64{1}},
		"other dtype":   {Name: "hyper.momentum", DType: tensor.Float32, Sizes: []int64{2}},
		"other numbers": {Name: "hyper.lr", DType: tensor.Float64, Sizes: []int64{2}},
	} {
		if h.Fill(spec, make([]byte, spec.Bytes())) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCheck(t *testing.T) {
	if err := Default(20).Check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Recipe){
		"steps":                  func(r *Recipe) { *r = Default(MinSteps - 1) },
		"steps, too many":        func(r *Recipe) { *r = Default(MaxSteps + 1) },
		"warmup_steps":           func(r *Recipe) { r.WarmupSteps = 20 },
		"warmup_steps, too many": func(r *Recipe) { r.WarmupSteps, r.PlateauSteps = math.MaxInt, math.MaxInt },
		"lr":                     func(r *Recipe) { r.LR = math.NaN() },
		"momentum":               func(r *Recipe) { r.Momentum = 0 },
		"weight_decay":           func(r *Recipe) { r.WeightDecay = -1 },
		"min_lr_ratio":           func(r *Recipe) { r.MinLRRatio = 2 },
		"ema_decay":              func(r *Recipe) { r.EMADecay = 1.5 },
		"ema_tau":                func(r *Recipe) { r.EMATau = math.Inf(1) },
	} {
		r := Default(20)
		spoil(&r)
		ps, _ := diag.Of(r.Check())
		path, _, _ := strings.Cut(name, ",")
		if len(ps) != 1 || ps[0].Path != path || ps[0].Reason != "BAD_SCHEDULE" {
			t.Errorf("%s: %v", name, ps)
		}
	}
}
