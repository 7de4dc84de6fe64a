package suitetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// Pictures are what the fakes make of pictures: files of any bytes. One that begins with "bad" cannot be read; one that
// begins with "twice" wants two steps. The answer is the sum of the last step's logits.
type Pictures struct {
	RefusesPicture string // the source at whose end the fake refuses to answer
}

// prediction is one under way.
type prediction struct {
	sources []string
	steps   int // still wanted
}

// Process implements suite.Arm.
func (a *fakeArm) Process(_ context.Context, r arm.ProcessRequest) (arm.ProcessReply, error) {
	if a.kind != "reference" {
		return arm.ProcessReply{}, arm.ErrUnimplemented
	}
	a.calls.Lock()
	defer a.calls.Unlock()
	number := setting(r.Settings, "number")
	if r.Stage == "begin" {
		return a.begin(number, r)
	}
	p := a.underWay[number]
	if p == nil && r.Stage != "drop" {
		return arm.ProcessReply{}, diag.New("NO_SUCH_PREDICTION", "number", "nothing is under way as %s", number)
	}
	switch r.Stage {
	case "give":
		data := a.at(r.Bank[0].Region)
		for i, source := range p.sources {
			text, err := os.ReadFile(source)
			if err != nil {
				return arm.ProcessReply{}, err
			}
			values := make([]float32, elements)
			for j := range values {
				values[j] = float32(text[j%len(text)])/256 + float32(p.steps)
			}
			copy(data[4*elements*i:], floats(values))
		}
		return arm.ProcessReply{Tensors: a.specs(), Text: "{}"}, nil
	case "finish":
		if p.steps--; p.steps > 0 {
			return arm.ProcessReply{Tensors: []tensor.Spec{images()}, Text: "{}"}, nil
		}
		return a.answers(number, p, parse(a.at(r.Bank[1].Region)))
	case "drop":
		delete(a.underWay, number)
		return arm.ProcessReply{Text: "{}"}, nil
	}
	return arm.ProcessReply{}, diag.New("UNKNOWN_STAGE", "stage", "no stage is named %s", r.Stage)
}

func (a *fakeArm) begin(number string, r arm.ProcessRequest) (arm.ProcessReply, error) {
	p := &prediction{steps: 1}
	var failed []map[string]any
	for i, s := range slices.DeleteFunc(slices.Clone(r.Settings), func(s recording.Setting) bool { return s.Key != "source" }) {
		text, err := os.ReadFile(s.Value)
		if err != nil {
			return arm.ProcessReply{}, err
		}
		if strings.HasPrefix(string(text), "twice") {
			p.steps = 2
		}
		if strings.HasPrefix(string(text), "bad") {
			failed = append(failed, map[string]any{"source": i,
				"problem": map[string]string{"reason": "UNREADABLE_IMAGE", "summary": "it is bad", "path": s.Value}})
			continue
		}
		p.sources = append(p.sources, s.Value)
	}
	text, err := json.Marshal(map[string]any{"failed": failed, "ms": map[string]float64{"preprocess": 1}})
	if err != nil || len(p.sources) == 0 {
		return arm.ProcessReply{Text: string(text)}, err
	}
	if a.underWay == nil {
		a.underWay = map[string]*prediction{}
	}
	a.underWay[number] = p
	return arm.ProcessReply{Tensors: []tensor.Spec{images()}, Text: string(text)}, nil
}

func (a *fakeArm) answers(number string, p *prediction, logits []float32) (arm.ProcessReply, error) {
	delete(a.underWay, number)
	var sum float64
	for _, x := range logits {
		sum += float64(x)
	}
	for _, source := range p.sources {
		if a.RefusesPicture != "" && strings.HasSuffix(source, a.RefusesPicture) {
			return arm.ProcessReply{}, diag.New("POSTPROCESS_FAILED", source, "it does not like it")
		}
	}
	text := fmt.Sprintf(`{"results": [{"source": 0, "width": 8, "height": 8, "answer": {"sum": %.3f}}], "ms": {"postprocess": 2}}`, sum)
	return arm.ProcessReply{Text: text}, nil
}

func setting(all []recording.Setting, key string) string {
	for _, s := range all {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
