package suitetest

import (
	"math"
	"strings"

	"samebits/bridge/arm"
)

type pupilInputs struct {
	means   [3]float64
	counts  [classes]float64
	images  int64
	lr, wd  []float64
	mu, ema float64
}

func (p *pupil) round(x float64) float64 {
	if p.double {
		return x
	}
	return float64(float32(x))
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
