package suitetest

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
)

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
