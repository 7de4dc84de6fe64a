package predict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/bridge/recording"
)

// underWay is how many predictions are begun at once: one whose pictures are read and prepared, one in its step, one whose
// outputs are read.
const underWay = 3

// Outcome is what became of one picture.
type Outcome struct {
	Picture Picture
	Problem *diag.Problem // why there is no answer
	Line    []byte        // one JSON object
}

// Run predicts pictures, a batch at a time, and hands on what became of each, in their order. It ends early if something
// broke that no further picture would fare better with, or if each gives an error.
func (p *Predictor) Run(ctx context.Context, pictures []Picture, each func(Outcome) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	batch := int(max(p.Cell.Batch, 1))
	queue := make(chan chan done, underWay-1)
	go func() {
		defer close(queue)
		for number := 0; len(pictures) > 0; number++ {
			some := pictures[:min(batch, len(pictures))]
			pictures = pictures[len(some):]
			answer := make(chan done, 1)
			select {
			case queue <- answer:
			case <-ctx.Done():
				return
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				outcomes, err := p.predict(ctx, number, some)
				answer <- done{outcomes, err}
			}()
			if !p.wasReady.Load() { // whether the arm can be made ready at all is for the first to say
				<-ended
			}
		}
	}()
	var failed error
	for answer := range queue {
		d := <-answer // also of those that were under way when something broke: they still use the memory
		if failed != nil {
			continue
		}
		failed = d.err
		for _, o := range d.outcomes {
			if failed == nil {
				failed = each(o)
			}
		}
		if failed != nil {
			stop()
		}
	}
	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}

type done struct {
	outcomes []Outcome
	err      error
}

// said is the JSON of a stage.
type said struct {
	Failed []struct {
		Source  int
		Problem diag.Problem
	}
	Results []result
	MS      map[string]float64
}

type result struct {
	Source, Width, Height int
	Answer                json.RawMessage
}

// predict predicts one batch. Its error is one that ends the run; what is wrong with pictures is in the outcomes.
func (p *Predictor) predict(ctx context.Context, number int, pictures []Picture) ([]Outcome, error) {
	outcomes := make([]Outcome, len(pictures))
	for i, picture := range pictures {
		outcomes[i].Picture = picture
	}
	b := &batch{Predictor: p, number: recording.Setting{Key: "number", Value: strconv.Itoa(number)}, ms: map[string]float64{}}
	err := b.run(ctx, pictures)
	if err != nil && !b.ended {
		b.drop(ctx)
	}
	for _, f := range b.said.Failed {
		if f.Source < 0 || f.Source >= len(pictures) {
			return nil, fmt.Errorf("the reference plugin speaks of picture %d of %d", f.Source, len(pictures))
		}
		outcomes[f.Source].Problem = &f.Problem
	}
	if err != nil {
		problems, known := diag.Of(err)
		if !known || ends(ctx, err) {
			return nil, err
		}
		for i := range outcomes {
			if outcomes[i].Problem == nil {
				outcomes[i].Problem = &problems[0]
			}
		}
		return outcomes, nil
	}
	for _, r := range b.said.Results {
		if r.Source < 0 || r.Source >= len(pictures) {
			return nil, fmt.Errorf("the reference plugin speaks of picture %d of %d", r.Source, len(pictures))
		}
		if outcomes[r.Source].Line, err = b.line(pictures[r.Source], r, len(b.said.Results)); err != nil {
			return nil, err
		}
	}
	for i, o := range outcomes {
		if o.Line == nil && o.Problem == nil {
			outcomes[i].Problem = &diag.Problem{Reason: "NO_ANSWER", Summary: "the reference plugin says nothing of it", Path: o.Picture.Path}
		}
	}
	return outcomes, nil
}

// CannotWrite is the reason of a file that cannot be written.
const CannotWrite = "CANNOT_WRITE"

// ends reports whether an error would come again with every picture.
func ends(ctx context.Context, err error) bool {
	var gone *host.Error
	var unready NotReadyError
	if ctx.Err() != nil || errors.As(err, &gone) || errors.As(err, &unready) || errors.Is(err, arm.ErrOutOfMemory) {
		return true
	}
	problems, _ := diag.Of(err)
	return slices.ContainsFunc(problems, func(p diag.Problem) bool {
		return slices.Contains([]string{CannotWrite, "BAD_SETTING", "NOT_PREDICTABLE", "UNIMPLEMENTED", "UNKNOWN_STAGE"}, p.Reason)
	})
}

// batch is one prediction under way.
type batch struct {
	*Predictor
	number recording.Setting
	said   said
	ms     map[string]float64
	arm    string
	ended  bool // or never begun
}

func (b *batch) run(ctx context.Context, pictures []Picture) error {
	settings := b.settings()
	for _, picture := range pictures {
		settings = append(settings, recording.Setting{Key: "source", Value: picture.Path}, recording.Setting{Key: "name", Value: picture.Name})
	}
	b.ended = true
	reply, err := b.stage(ctx, "begin", nil, settings...)
	for ; err == nil && len(reply.Tensors) > 0; reply, err = b.once(ctx, reply) {
		b.ended = false
	}
	b.ended = b.ended || err == nil
	return err
}

// once runs one step that the family wants.
func (b *batch) once(ctx context.Context, wants arm.ProcessReply) (reply arm.ProcessReply, err error) {
	given, err := b.places.bank(ctx, wants.Tensors)
	if err != nil {
		return reply, err
	}
	defer func() { b.places.put(given.places...) }()
	if reply, err = b.stage(ctx, "give", given.Bank); err != nil {
		return reply, err
	}
	made, err := b.places.bank(ctx, reply.Tensors)
	if err != nil {
		return reply, err
	}
	defer func() { b.places.put(made.places...) }()
	took, graph, err := b.step(ctx, given, made)
	if err != nil {
		return reply, err
	}
	b.ms["step"] += float64(took) / float64(time.Millisecond)
	if b.arm = b.options.Arm; !graph {
		b.arm = strings.Replace(b.arm, "graph", "eager", 1)
	}
	return b.stage(ctx, "finish", made.Bank)
}

// stage does one stage in the reference process.
func (b *batch) stage(ctx context.Context, name string, bank arm.Bank, settings ...recording.Setting) (arm.ProcessReply, error) {
	reply, err := b.around.Process(ctx, arm.ProcessRequest{Stage: name, Settings: append(settings, b.number), Bank: bank})
	if err != nil {
		return reply, err
	}
	var s said
	if err := json.Unmarshal([]byte(reply.Text), &s); err != nil {
		return reply, fmt.Errorf("what the reference plugin says of stage %s: %w", name, err)
	}
	b.said.Failed, b.said.Results = append(b.said.Failed, s.Failed...), append(b.said.Results, s.Results...)
	for stage, ms := range s.MS {
		b.ms[stage] += ms
	}
	return reply, nil
}

// drop ends a prediction that will not be finished.
func (b *batch) drop(ctx context.Context) {
	_, _ = b.stage(ctx, "drop", nil) // if the process is gone, so is the prediction
}

// line is a picture's JSON object: what it is, then the answer.
func (b *batch) line(picture Picture, r result, of int) ([]byte, error) {
	c := b.Cell
	head := header{Image: picture.Path, Width: r.Width, Height: r.Height, Family: c.Family, Size: c.Size, Task: c.Task,
		Precision: c.Precision, Device: c.Device, Arm: b.arm, MS: map[string]float64{}}
	if head.Weights = b.options.Weights; head.Weights == "" {
		head.Weights = Random
	}
	for stage, ms := range b.ms {
		head.MS[stage] = float64(int64(ms/float64(of)*1000+0.5)) / 1000
	}
	line, err := json.Marshal(head)
	if err != nil || len(r.Answer) < 2 || r.Answer[0] != '{' {
		return nil, errors.Join(err, errors.New("the reference plugin gave no answer"))
	}
	if len(r.Answer) > 2 {
		line = append(append(line[:len(line)-1], ','), r.Answer[1:]...)
	}
	return line, nil
}

// Random is what stands for weights that no file holds.
const Random = "random"

type header struct {
	Image     string             `json:"image"`
	Width     int                `json:"width"`
	Height    int                `json:"height"`
	Family    string             `json:"family"`
	Size      string             `json:"size"`
	Task      string             `json:"task"`
	Precision string             `json:"precision"`
	Weights   string             `json:"weights"`
	Device    string             `json:"device"`
	Arm       string             `json:"arm"`
	MS        map[string]float64 `json:"ms"`
}
