package samebits

import (
	"fmt"

	"samebits/native/train"
)

// trainCall is the argument of TrainStep.
type trainCall struct {
	Shape    int          `json:"shape"`     // number of the recording
	Inputs   []int64      `json:"inputs"`    // addresses, in the recording's order
	Outputs  []trainWants `json:"outputs"`   // what to copy out
	OnDevice bool         `json:"on_device"` // as of step
	Stream   int64        `json:"stream"`
	Hyper    struct {
		LR          []float64 `json:"lr"`
		WeightDecay []float64 `json:"weight_decay"`
		Momentum    float64   `json:"momentum"`
		EMADecay    float64   `json:"ema_decay"`
	} `json:"hyper"`
}

type trainWants struct {
	Output  int   `json:"output"`
	Address int64 `json:"address"`
}

// trained is the result of TrainStep.
type trained struct {
	Steps   int64  `json:"steps"`
	Warning string `json:"warning"`
}

// TrainStep runs forward, loss, backward and the optimizer once. Like Predict it is a job between host arrays, and returns
// at once on the device.
func TrainStep(ticket, number int64, call string) (result string, err error) {
	defer finish(&err)
	var c trainCall
	if err := fromJSON(call, &c); err != nil {
		return "", err
	}
	work := func(j *job) (result string, err error) {
		err = use(number, func(_ *object, t *trainer) error {
			if err := t.step(&c, j); err != nil {
				return as(codeDevice, err)
			}
			result = asJSON(trained{t.Steps(), t.graphs.warning()})
			return nil
		})
		return result, err
	}
	if c.OnDevice {
		return work(nil)
	}
	return runShort(ticket, number, work)
}

func (t *trainer) step(c *trainCall, j *job) error {
	s, err := t.shape(c.Shape)
	if err != nil {
		return err
	}
	if len(c.Inputs) != len(s.Inputs()) {
		return as(codeInternal, fmt.Errorf("%d inputs for a recording with %d", len(c.Inputs), len(s.Inputs())))
	}
	if !c.OnDevice || (t.launched != nil && t.launched != s) {
		if err := t.settle(); err != nil { // recordings have streams of their own, but one state
			return err
		}
	}
	hyper := func() error {
		return s.SetHyper(train.Hyper{LR: c.Hyper.LR, WeightDecay: c.Hyper.WeightDecay, Momentum: c.Hyper.Momentum, EMADecay: c.Hyper.EMADecay})
	}
	launch := t.graph[s].Launch
	model := hosted{s.Model(), t.host}
	if c.OnDevice {
		t.launched = s
		return onDevice(model, uintptr(c.Stream), transfers{
			feed: func() error {
				for i, address := range c.Inputs {
					if err := s.Model().WriteInputAt(i, uintptr(address)); err != nil {
						return err
					}
				}
				return hyper()
			},
			launch: launch,
			fetch: func() error {
				for _, w := range c.Outputs {
					if err := s.Model().ReadOutputAt(w.Output, uintptr(w.Address)); err != nil {
						return err
					}
				}
				return nil
			},
		})
	}
	return onHost(model, j, transfers{
		feed: func() error {
			for i, address := range c.Inputs {
				if err := s.Feed(i, at(address, s.Inputs()[i].Bytes())); err != nil {
					return err
				}
			}
			return hyper()
		},
		launch: launch,
		fetch: func() error {
			for _, w := range c.Outputs {
				if err := s.Fetch(w.Output, at(w.Address, s.Outputs()[w.Output].Bytes())); err != nil {
					return err
				}
			}
			return nil
		},
	})
}
