package matrix_test

import (
	"strings"
	"testing"

	"samebits/parity/gate"
	"samebits/parity/matrix"
	"samebits/parity/result"
	"samebits/parity/schedule"
	"samebits/parity/suite"
)

func TestReuse(t *testing.T) {
	engine, other := strings.Repeat("ab", 32), strings.Repeat("cd", 32)
	cell := suite.Cell{Family: "resnet", Size: "18", Task: "classify", ImgSize: 224, Batch: 1, Precision: "fp32", Profile: "exact-1",
		Device: "cuda:0", Mode: gate.Predict}
	trained := cell
	trained.Mode, trained.Training = gate.Train, schedule.Default(20)
	here := matrix.Here{}
	here.Take(map[string]string{"engine_build": engine, "gpu": "NVIDIA H200", "gpu.uuid": "GPU-1", "cudnn.path": "/a", "cudnn": "9.19.0",
		"torch": "2.11.0", "nvrtc": ""})
	environment := func(changes ...string) map[string]string {
		e := map[string]string{"engine_build": engine, "gpu": "NVIDIA H200", "gpu.uuid": "GPU-2", "cudnn.path": "/b", "cudnn": "9.19",
			"native.cudnn": "9.19.0", "torch": "2.11.0+cu130"}
		for i := 0; i < len(changes); i += 2 {
			e[changes[i]] = changes[i+1]
		}
		return e
	}
	of := func(c suite.Cell, v result.Verdict, e map[string]string) result.Result {
		r := c.Result()
		r.Verdict, r.Environment = v, e
		return r
	}
	with := func(change func(*suite.Cell)) suite.Cell {
		c := cell
		change(&c)
		return c
	}
	for _, c := range []struct {
		name string
		kept result.Result
		cell suite.Cell
		why  string // "-": it is of another cell
	}{
		{"the same", of(cell, result.Exact, environment()), cell, ""},
		{"it differs, and that is a result", of(cell, result.Differs, environment()), cell, ""},
		{"a refusal", of(cell, result.Refused, environment()), cell, ""},
		{"another GPU of the kind", of(with(func(c *suite.Cell) { c.Device = "cuda:3" }), result.Exact, environment()), cell, ""},
		{"broken", of(cell, result.Broken, environment()), cell, "it is broken"},
		{"another engine", of(cell, result.Exact, environment("engine_build", other)), cell, "its engine_build is cdcdcdcdcdcdcdcd, not abababababababab"},
		{"another torch", of(cell, result.Exact, environment("torch", "2.10.0+cu128")), cell, "its torch is 2.10.0+cu128, not 2.11.0"},
		{"another cuDNN, of native", of(cell, result.Exact, environment("native.cudnn", "9.18.0")), cell, "its cudnn is 9.18.0"},
		{"another GPU", of(cell, result.Exact, environment("gpu", "NVIDIA H100")), cell, "its gpu is NVIDIA H100"},
		{"no engine", of(cell, result.Exact, environment("engine_build", "")), cell, "it does not say its engine_build"},
		{"refused before native said where it ran", of(cell, result.Refused, environment("gpu", "", "native.cudnn", "", "cudnn", "")), cell, ""},
		{"the host", of(with(func(c *suite.Cell) { c.Device = suite.HostDevice }), result.Consistent, environment()), cell, "-"},
		{"another precision", of(with(func(c *suite.Cell) { c.Precision = "bf16" }), result.Exact, environment()), cell, "-"},
		{"another image size", of(with(func(c *suite.Cell) { c.ImgSize = 640 }), result.Exact, environment()), cell, "-"},
		{"another batch", of(with(func(c *suite.Cell) { c.Batch = 3 }), result.Exact, environment()), cell, "-"},
		{"another seed", of(with(func(c *suite.Cell) { c.Seed = 1 }), result.Exact, environment()), cell, "-"},
		{"training", trainedResult(trained, environment(), schedule.Default(20)), trained, ""},
		{"training of other steps", trainedResult(trained, environment(), schedule.Default(10)), trained, "-"},
		{"training that does not say how", of(trained, result.Exact, environment()), trained, "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			kept := []result.Kept{{Result: of(with(func(c *suite.Cell) { c.Family = "yolo9" }), result.Exact, environment()), File: "other.json"},
				{Result: c.kept, File: "kept.json"}}
			found, why := matrix.Reuse(kept, c.cell, here)
			switch {
			case c.why == "":
				if found == nil || found.File != "kept.json" || why != "" {
					t.Errorf("not found: %s", why)
				}
			case c.why == "-":
				if found != nil || why != "" {
					t.Errorf("found %v, %s", found, why)
				}
			case found != nil || !strings.Contains(why, "kept.json: "+c.why):
				t.Errorf("found %v, %q", found, why)
			}
		})
	}
}

func trainedResult(c suite.Cell, environment map[string]string, recipe schedule.Recipe) result.Result {
	r := c.Result()
	r.Verdict, r.Environment, r.Training = result.Exact, environment, &result.Training{Recipe: recipe}
	return r
}
