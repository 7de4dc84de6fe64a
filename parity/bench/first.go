package bench

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/parity/launch"
	"samebits/parity/suite"
)

// starterOfFirsts starts processes that predict once.
type starterOfFirsts interface {
	// NativeIn starts the native engine with a folder of its own for compiled kernels.
	NativeIn(ctx context.Context, cache string, reference []recording.Setting) (suite.Arm, error)
	// FirstReference has a process of plain PyTorch predict once.
	FirstReference(ctx context.Context, f launch.First) (launch.FirstReply, error)
}

// firstSteps is how many parts the first predictions are of the work on a cell.
func firstSteps(starts int) int {
	if starts == 0 {
		return 0
	}
	return 1 + 2*starts // cold once
}

// first measures first predictions, each in a process of its own, while no arm is there any more. Programs and libraries are
// in the system's file cache by now.
func (r *run) first(ctx context.Context) error {
	if r.Settings.Starts == 0 {
		return nil
	}
	dir, remove, err := folder()
	if err != nil {
		return err
	}
	defer remove()
	cache := filepath.Join(dir, "kernels")
	cold := First{Name: FirstCold, Arm: arm.NativeGraph, Cache: "cold", Outcome: Measured, Times: []float64{}}
	warm := First{Name: FirstWarm, Arm: arm.NativeGraph, Cache: "warm", Outcome: Measured, Times: []float64{}}
	reference := First{Name: FirstReference, Arm: arm.ReferenceEager, Outcome: Measured, Times: []float64{}}
	native := func(f *First) error { return r.firstNative(ctx, f, cache) }
	r.attempt(ctx, &cold, native)
	for range r.Settings.Starts {
		r.attempt(ctx, &reference, func(f *First) error { return r.firstReference(ctx, f, dir) })
		r.attempt(ctx, &warm, native)
	}
	for _, f := range []*First{&warm, &cold, &reference} {
		if len(f.Times) > 0 {
			f.MS = Summarize(f.Times).MedianMS
		}
		r.cell.First = append(r.cell.First, *f)
	}
	return ctx.Err()
}

// attempt measures once more, unless it failed before.
func (r *run) attempt(ctx context.Context, f *First, once func(*First) error) {
	r.progress("first prediction of " + f.Name)
	if len(f.Problems) > 0 || ctx.Err() != nil {
		return
	}
	if err := suite.Guarded(func() error { return once(f) }); err != nil {
		f.Outcome, f.Problems = outcomeOf(ctx, err)
	}
}

// cached starts native with a folder of its own for compiled kernels.
type cached struct {
	Starter
	folder string
}

// Native implements suite.Starter.
func (c cached) Native(ctx context.Context, reference []recording.Setting) (suite.Arm, error) {
	return c.NativeIn(ctx, c.folder, reference)
}

// firstNative starts native-graph: recording and weights are handed over, compiled, captured, and one step is run.
func (r *run) firstNative(ctx context.Context, f *First, cache string) error {
	watch := &stopwatch{Starter: cached{r.Start, cache}}
	began := time.Now()
	standing, err := r.stand.Open(ctx, watch, f.Arm)
	if err != nil {
		return err
	}
	defer standing.Arm().Stop()
	stepped := time.Now()
	outputs, err := standing.Step(ctx)
	if err != nil {
		return err
	}
	watch.add("step", time.Since(stepped))
	took := time.Since(began) - watch.aside
	f.Times = append(f.Times, float64(took)/float64(time.Millisecond))
	f.Stages = watch.stages
	f.MaxRSS, _ = rss(watch.pid())
	r.sameAsEager(f, outputs.Digests())
	return nil
}

// sameAsEager notes whether a first prediction is the eager reference's.
func (r *run) sameAsEager(f *First, digests map[string]string) {
	if r.eager == nil {
		return
	}
	same := maps.Equal(digests, r.eager.Digests())
	f.Same = &same
	if !same && r.asked.OnGPU() {
		f.Outcome = Differs
	}
}

// firstFiles writes what the process of PyTorch reads.
func (r *run) firstFiles(dir string) (launch.First, error) {
	images, err := r.stand.Images()
	if err != nil {
		return launch.First{}, err
	}
	c := r.stand.Cell
	f := launch.First{Weights: filepath.Join(dir, "weights.safetensors"), Images: filepath.Join(dir, "images"),
		Build: arm.BuildRequest{Family: c.Family, Size: c.Size, Task: c.Task, Seed: c.Seed, Precision: c.Precision, Profile: c.Profile,
			Device: c.ReferenceDevice(), ImgSize: c.ImgSize, Batch: c.Batch}}
	for _, file := range []struct {
		path string
		data []byte
	}{{f.Weights, r.stand.Recorded.Built}, {f.Images, images}} {
		if err := os.WriteFile(file.path, file.data, 0o600); err != nil {
			return launch.First{}, err
		}
	}
	return f, nil
}

func (r *run) firstReference(ctx context.Context, f *First, dir string) error {
	files, err := r.firstFiles(dir)
	if err != nil {
		return err
	}
	reply, err := r.Start.FirstReference(ctx, files)
	if err != nil {
		return err
	}
	f.Times = append(f.Times, float64(reply.Finished)/float64(time.Millisecond))
	f.Stages, f.MaxRSS = slices.Clone(reply.Stages), reply.MaxRSS
	r.sameAsEager(f, reply.Outputs)
	return nil
}
