package bench

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync"

	"samebits/bridge/arm"
	"samebits/bridge/ownfolder"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/smi"
	"samebits/parity/suite"
)

// Starter starts what is measured: arms, and processes that predict once. A *launch.Launcher is one.
type Starter interface {
	suite.Starter
	starterOfFirsts
}

// Watcher says what the GPU does. A *smi.Reader is one.
type Watcher interface {
	Read(ctx context.Context) (smi.Sample, error)
}

// Bench measures cells, one after the other.
type Bench struct {
	Start    Starter
	Settings Settings
	Arms     []string // what Arms gives, or a part of it; reference-eager is what bits are compared with
	Opening  int      // arms that become ready at once
	Watch    Watcher  // nil: nobody watches
	Progress func(suite.Event)
}

// run is the measuring of one cell.
type run struct {
	*Bench
	asked suite.Cell
	cell  *Cell
	stand *suite.Stand
	arms  []*measured
	eager gate.Outputs // nil: there are none to compare with

	environment map[string]string
	steps, step int
	told        sync.Mutex
}

// Measure measures one cell. What goes wrong is in the cell's report; an error is an end of the run. The environment is what
// the arms said of theirs.
func (b *Bench) Measure(ctx context.Context, asked suite.Cell) (Cell, map[string]string, error) {
	cell := newCell(asked)
	r := &run{Bench: b, asked: asked, cell: &cell, environment: map[string]string{}}
	r.steps = Steps(len(b.Arms), b.Settings)
	err := suite.Guarded(func() error { return r.all(ctx) })
	if ctx.Err() != nil {
		return cell, r.environment, ctx.Err()
	}
	if err != nil {
		cell.Outcome, cell.Problems = outcomeOf(ctx, err)
	}
	cell.settle()
	return cell, r.environment, nil
}

// Steps is how many parts the work on a cell has.
func Steps(arms int, s Settings) int { return 1 + arms + s.Rounds + firstSteps(s.Starts) }

// outcomeOf says what an error is: a refusal, or something that broke.
func outcomeOf(ctx context.Context, err error) (Outcome, []result.Problem) {
	verdict, problems := suite.Classify(ctx, err)
	if verdict == result.Refused {
		return Refused, result.Problems(problems)
	}
	return Broken, result.Problems(problems)
}

func (r *run) progress(what string) {
	r.told.Lock() // arms may get ready at the same time
	defer r.told.Unlock()
	r.step++
	if r.Progress != nil {
		r.Progress(suite.Event{Cell: r.asked, Step: min(r.step, r.steps), Steps: r.steps, What: what})
	}
}

func (r *run) all(ctx context.Context) error {
	r.sample(ctx, "before")
	r.progress("recording")
	var err error
	if r.stand, err = suite.NewStand(ctx, r.Start, r.asked); err != nil {
		return err
	}
	r.describe()
	defer r.close()
	if err := r.open(ctx); err != nil {
		return err
	}
	r.compare()
	r.rounds(ctx)
	r.finish(ctx)
	r.close()
	r.sample(ctx, "after")
	r.judgeSamples()
	return r.first(ctx)
}

// describe fills in what the recorder said of the cell.
func (r *run) describe() {
	c := newCell(r.stand.Cell)
	c.GPU, c.Notes = r.cell.GPU, r.cell.Notes
	c.Segment = r.stand.Recorded.Segment
	if r.stand.Recorded.Recording != nil {
		c.Recording, c.Operations = r.stand.Recorded.Recording.Digest, len(r.stand.Recorded.Recording.Operations)
	}
	for _, name := range r.Arms {
		c.Arms = append(c.Arms, Arm{Name: name, Outcome: Measured})
	}
	*r.cell = c
	for i := range r.cell.Arms {
		r.arms = append(r.arms, &measured{report: &r.cell.Arms[i]})
	}
}

// open makes all arms ready. One that fails does not stop the others.
func (r *run) open(ctx context.Context) error {
	var working sync.WaitGroup
	places := make(chan struct{}, max(r.Opening, 1))
	for _, m := range r.arms {
		places <- struct{}{} // in the order of the arms
		working.Go(func() {
			defer func() { <-places }()
			r.progress("opening " + m.report.Name)
			if err := suite.Guarded(func() error { return m.open(ctx, r) }); err != nil {
				m.fail(ctx, err)
			}
		})
	}
	working.Wait()
	for _, m := range r.arms {
		if m.standing != nil {
			maps.Copy(r.environment, m.standing.Environment())
		}
	}
	return ctx.Err()
}

// compare holds every arm's outputs to the eager reference's.
func (r *run) compare() {
	for _, m := range r.arms {
		if m.report.Name == arm.ReferenceEager {
			r.eager = m.outputs
		}
	}
	for _, m := range r.arms {
		if r.eager == nil || m.outputs == nil || m.report.Name == arm.ReferenceEager {
			continue
		}
		bits := compareBits(r.eager, m.outputs)
		// On the host PyTorch's own libraries compute the reference; torch.compile reorders arithmetic.
		bits.Demanded = r.asked.OnGPU() && m.report.Name != arm.ReferenceCompile
		m.report.Bits = &bits
		if bits.Demanded && !bits.Same {
			m.report.Outcome = Differs
		}
		m.outputs = nil
	}
}

// close ends all processes.
func (r *run) close() {
	var stopping sync.WaitGroup
	for _, m := range r.arms {
		stopping.Go(m.stop)
	}
	stopping.Wait()
}

// note adds what is to be borne in mind of this cell's figures.
func (r *run) note(format string, args ...any) {
	r.cell.Notes = append(r.cell.Notes, fmt.Sprintf(format, args...))
}

// folder makes a folder for files of the run.
func folder() (path string, remove func(), err error) {
	f, err := ownfolder.New(os.TempDir(), "bench")
	if err != nil {
		return "", func() {}, err
	}
	return f.Path, f.Remove, nil
}
