package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/parity/suite"
)

// First is a prediction by PyTorch in a process of its own, as a program makes it that predicts once.
type First struct {
	Build   arm.BuildRequest
	Weights string // file of the model's own weights
	Images  string // file of the images' bytes
}

// FirstReply says when what was done.
type FirstReply struct {
	Stages   []Stage           `json:"stages"`
	MaxRSS   int64             `json:"max_rss_bytes"`
	Outputs  map[string]string `json:"outputs"` // digests
	Finished time.Duration     `json:"-"`       // from the start of the process to the outputs
}

// Stage is a part of the way to a first prediction.
type Stage struct {
	Name string  `json:"name"`
	MS   float64 `json:"ms"`
}

// firstDeadline is for imports, a build and one step.
const firstDeadline = 10 * time.Minute

// FirstReference starts Python, and has it predict once.
func (l *Launcher) FirstReference(ctx context.Context, f First) (FirstReply, error) {
	python, err := l.Python()
	if err != nil {
		return FirstReply{}, err
	}
	b := f.Build
	args := []string{"-m", "samebits_reference.first", "--weights", f.Weights, "--images", f.Images}
	for _, flag := range []struct{ name, value string }{
		{"family", b.Family}, {"size", b.Size}, {"task", b.Task}, {"precision", b.Precision}, {"profile", b.Profile}, {"device", b.Device},
		{"seed", strconv.FormatUint(b.Seed, 10)}, {"imgsz", strconv.FormatInt(b.ImgSize, 10)}, {"batch", strconv.FormatInt(b.Batch, 10)},
	} {
		if flag.value != "" {
			args = append(args, "--"+flag.name, flag.value)
		}
	}
	began, err := monotonic()
	if err != nil {
		return FirstReply{}, err
	}
	args = append(args, "--began", strconv.FormatInt(began, 10))
	out, err := runWithin(ctx, firstDeadline, "reference", l.pythonEnvironment(), python, args...)
	if err != nil {
		return FirstReply{}, err
	}
	return readFirst(out)
}

func readFirst(out []byte) (FirstReply, error) {
	var reply FirstReply
	if err := json.Unmarshal(out, &reply); err != nil {
		return reply, fmt.Errorf("what the first prediction of PyTorch says: %w", err)
	}
	for _, s := range reply.Stages {
		reply.Finished += time.Duration(s.MS * float64(time.Millisecond))
	}
	if reply.Finished <= 0 || len(reply.Outputs) == 0 {
		return reply, fmt.Errorf("the first prediction of PyTorch took %v and gave %d outputs", reply.Finished, len(reply.Outputs))
	}
	return reply, nil
}

// monotonic is the clock that Python's time.monotonic_ns reads, too.
func monotonic() (int64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("clock: %w", err)
	}
	return now.Nano(), nil
}

// cacheVariable tells the native engine where it keeps compiled kernels.
const cacheVariable = "SAMEBITS_CACHE"

// NativeIn starts the plugin around the native engine like Native, with a folder of its own for what it compiles.
func (l *Launcher) NativeIn(ctx context.Context, cache string, _ []recording.Setting) (suite.Arm, error) {
	program, err := l.Predictor()
	if err != nil {
		return nil, err
	}
	c := l.config("predictor", program)
	c.Env = append(l.nativeEnvironment(), cacheVariable+"="+cache)
	return l.start(ctx, c)
}
