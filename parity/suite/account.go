package suite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/parity/result"
)

// account is what a result says beside its verdict: when each process did what, and what the arms took of the device.
type account struct {
	mu        sync.Mutex
	began     time.Time
	processes []*process
	memory    map[string]result.Memory // by arm
	launches  *result.Launches
}

type process struct {
	arm    string
	phases []phase
}

type phase struct {
	name       string
	began, end time.Time
	waited     time.Duration
	calls      int
}

// stepping is the phase in which all calls but those of measuring and tracing stay that come between steps: memory is
// disturbed, a training run begins anew.
const stepping = "steps"

// situating is that of the situations that the gates judge, with the steps between.
const situating = "situations"

// phases are the names of calls that have others.
var phases = map[string]string{"Construct": "build", "Step": stepping, "Disturb": stepping, "Situate": situating}

// process enters a process, and gives what is to be told of its calls. They come one after the other.
func (a *account) process(name string) func(Call) {
	p := &process{arm: name}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.processes = append(a.processes, p)
	return func(c Call) {
		a.mu.Lock()
		defer a.mu.Unlock()
		p.add(c)
	}
}

func (p *process) add(c Call) {
	if c.What == "Stop" {
		return
	}
	name, known := phases[c.What]
	if !known {
		name = strings.ToLower(c.What)
	}
	end := c.Began.Add(c.Waited + c.Took)
	if n := len(p.phases); n > 0 {
		last := &p.phases[n-1]
		goesOn := (last.name == stepping && name != situating || last.name == situating) && name != "measure" && name != "trace"
		if name == last.name || name == "export" || goesOn {
			last.end, last.waited, last.calls = end, last.waited+c.Waited, last.calls+1
			return
		}
	}
	p.phases = append(p.phases, phase{name, c.Began, end, c.Waited, 1})
}

// weigh asks an arm what it took until now.
func (v *verification) weigh(ctx context.Context, s *session) error {
	stats, err := s.arm.Stats(ctx)
	switch {
	case errors.Is(err, arm.ErrUnimplemented): // nobody counts
	case err != nil:
		return fmt.Errorf("%s: stats: %w", s.name, err)
	default:
		v.account.weigh(s, stats)
	}
	return nil
}

// weigh notes what an arm took; of several processes of one arm the one that took most.
func (a *account) weigh(s *session, stats arm.Stats) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if stats.PeakBytes > a.memory[s.name].PeakBytes {
		a.memory[s.name] = result.Memory{PeakBytes: stats.PeakBytes, ReservedBytes: stats.ReservedBytes, ArenaBytes: s.arena}
	}
}

// launch notes what a step of a native arm launches: of the first that says it, for both walk one list.
func (a *account) launch(list arm.LaunchList) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.launches == nil {
		a.launches = result.NewLaunches(list)
	}
}

// close writes the account into a result.
func (a *account) close(r *result.Result) {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Launches = a.launches
	for name, m := range a.memory {
		if !slices.Contains(r.Arms, name) {
			continue
		}
		if r.Memory == nil {
			r.Memory = map[string]result.Memory{}
		}
		r.Memory[name] = m
	}
	ms := func(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 10 }
	for _, p := range a.processes {
		if len(p.phases) == 0 {
			continue
		}
		entry := result.Process{Arm: p.arm}
		for _, ph := range p.phases {
			entry.Phases = append(entry.Phases, result.Phase{Name: ph.name, At: ms(ph.began.Sub(a.began)), Took: ms(ph.end.Sub(ph.began)),
				Waited: ms(ph.waited), Calls: ph.calls})
		}
		r.Processes = append(r.Processes, entry)
	}
}

// weightBytes is the size of all that a step reads and does not make, its inputs aside.
func weightBytes(r *recording.Recording) (n int64) {
	for _, s := range r.Storages {
		if s.Role.Weight() {
			n += s.Bytes
		}
	}
	return n
}
