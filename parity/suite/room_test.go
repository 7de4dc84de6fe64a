package suite_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"samebits/bridge/arm"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
	"samebits/parity/turns"
)

const gib = 1 << 30

// A GPU of 100 GiB, and what eager takes of it.
var reserved = map[string]int64{"light": 1 * gib, "heavy": 10 * gib, "huge": 40 * gib}

const gpu = 100 * gib

// crowded verifies cells at the same time, each of which begins once the ones before can do no more, and stays where the eager
// reference is judged until others can do no more. It gives their results and what they did, in its order.
func crowded(t *testing.T, start *suitetest.Starter, memory *turns.Memory, cells ...suite.Cell) (results []result.Result, events []string) {
	t.Helper()
	start.Reserves = reserved
	var mu sync.Mutex
	s := &suite.Suite{Start: start, Timing: suite.DefaultTiming(), Together: true, Turns: turns.New(8, 1), Memory: memory}
	s.Progress = func(e suite.Event) {
		mu.Lock()
		events = append(events, e.Cell.Family+" "+e.What)
		mu.Unlock()
		if e.What == arm.ReferenceEager {
			time.Sleep(time.Hour)
		}
	}
	results = make([]result.Result, len(cells))
	var working sync.WaitGroup
	for i, cell := range cells {
		working.Go(func() {
			time.Sleep(time.Duration(i) * time.Minute)
			results[i] = s.Verify(t.Context(), cell)
		})
	}
	working.Wait()
	return results, events
}

func cellsOf(families ...string) (cells []suite.Cell) {
	for _, family := range families {
		cell := fakeCell("cuda:0")
		cell.Family = family
		cells = append(cells, cell)
	}
	return cells
}

// first gives where an event comes first; -1: nowhere.
func first(events []string, what string) int { return slices.Index(events, what) }

func allExact(t *testing.T, results []result.Result) {
	t.Helper()
	for _, r := range results {
		if r.Verdict != result.Exact {
			t.Errorf("%s: %s: %s", r.Family, r.Verdict, r.Summary)
		}
	}
}

// allFree fails if some of the memory was not given back.
func allFree(t *testing.T, memory *turns.Memory) {
	t.Helper()
	done, err := memory.Take(t.Context(), gpu, func() { t.Error("something was not given back") })
	if err != nil {
		t.Fatal(err)
	}
	done()
}

func TestMemoryIsShared(t *testing.T) {
	const end = " native-graph with a cold cache"
	for _, c := range []struct {
		families []string
		waits    string // for the other to end; empty: both are there at once
	}{
		{[]string{"light", "light"}, ""},
		{[]string{"heavy", "light"}, ""},
		{[]string{"heavy", "heavy"}, "heavy"},
		{[]string{"huge", "light"}, "light"},
		{[]string{"light", "huge"}, "huge"},
	} {
		t.Run(fmt.Sprint(c.families), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := &suitetest.Starter{}
				memory := turns.NewMemory(gpu, 4)
				results, events := crowded(t, start, memory, cellsOf(c.families...)...)
				allExact(t, results)
				allFree(t, memory)
				if c.waits == "" {
					if rest := 5*reserved[c.families[0]] + 5*reserved[c.families[1]]; start.Device.MostFilled < rest {
						t.Errorf("only %d bytes were filled at once: %q", start.Device.MostFilled, events)
					}
					return
				}
				waits, ended := first(events, c.waits+" waiting for GPU memory"), first(events, c.families[0]+end)
				begins := slices.Index(events[max(ended, 0):], c.waits+" reference-eager")
				if waits < 0 || ended < waits || begins < 0 {
					t.Errorf("%q", events)
				}
				if huge := slices.Contains(c.families, "huge"); !huge && start.Device.MostFilled > gpu {
					t.Errorf("%d bytes were filled at once", start.Device.MostFilled)
				}
			})
		})
	}
}

// Without it two heavy cells fill the GPU: what TestMemoryIsShared shows is not for nothing.
func TestMemoryIsNotShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := &suitetest.Starter{Device: suitetest.Device{Memory: gpu}}
		results, _ := crowded(t, start, nil, cellsOf("heavy", "heavy")...)
		if results[1].Reason != "OUT_OF_MEMORY" || results[1].Verdict != result.Broken {
			t.Errorf("%s: %s", results[1].Verdict, results[1].Summary)
		}
		start = &suitetest.Starter{Device: suitetest.Device{Memory: gpu}}
		results, _ = crowded(t, start, turns.NewMemory(gpu, 4), cellsOf("heavy", "heavy", "light", "heavy")...)
		allExact(t, results)
	})
}

// A cell of which nobody counts the memory has its part of it.
func TestMemoryUncounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := &suitetest.Starter{Faults: suitetest.Faults{Bench: suitetest.Bench{Uncounted: true}}}
		memory := turns.NewMemory(gpu, 2)
		done, err := memory.Take(t.Context(), gpu/2, func() {})
		if err != nil {
			t.Fatal(err)
		}
		var ended sync.WaitGroup
		ended.Go(func() {
			results, events := crowded(t, start, memory, cellsOf("heavy", "huge")...)
			allExact(t, results)
			if first(events, "huge waiting for GPU memory") < 0 || first(events, "heavy reference-eager") < first(events, "heavy waiting for GPU memory") {
				t.Errorf("%q", events)
			}
		})
		time.Sleep(24 * time.Hour)
		done()
		ended.Wait()
		allFree(t, memory)
	})
}

// A run may end while a cell waits for memory, for its recorder or for the others: it holds none then.
func TestInterruptedWithoutMemory(t *testing.T) {
	for name, taken := range map[string]int64{"recorder": gpu, "all": gpu * 3 / 4} {
		for _, mode := range []string{gate.Predict, gate.Train} {
			for _, together := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s %v", name, mode, together), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						start := &suitetest.Starter{Faults: suitetest.Faults{Bench: suitetest.Bench{Uncounted: true}}}
						memory := turns.NewMemory(gpu, 2)
						if name == "recorder" {
							memory = turns.NewMemory(gpu, 4)
						}
						done, err := memory.Take(t.Context(), taken, func() {})
						if err != nil {
							t.Fatal(err)
						}
						ctx, cancel := context.WithCancel(t.Context())
						s := &suite.Suite{Start: start, Timing: suite.DefaultTiming(), Together: together, Turns: turns.New(8, 1), Memory: memory}
						waits, calls := 0, 0
						s.Progress = func(e suite.Event) {
							if e.What == "waiting for GPU memory" {
								waits++
								time.AfterFunc(time.Minute, cancel)
							}
						}
						s.Calls = func(c suite.Call) {
							if c.What == "Memory" {
								calls++
							}
						}
						cell := fakeCell("cuda:0")
						if mode == gate.Train {
							cell = trainCell("cuda:0")
						}
						r := s.Verify(ctx, cell)
						if r.Reason != suite.Interrupted || waits != 1 || calls != 0 || start.Alive != 0 {
							t.Errorf("%s: %s, %d waits, %d calls, %d processes alive", r.Reason, r.Summary, waits, calls, start.Alive)
						}
						done()
						allFree(t, memory)
					})
				})
			}
		}
	}
}

// However a cell ends, its memory is given back; and all kinds of cells come through with little of it.
func TestMemoryIsGivenBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		faults  suitetest.Faults
		verdict result.Verdict
	}{
		{"exact", suitetest.Faults{}, result.Exact},
		{"no reference", suitetest.Faults{Dead: fmt.Errorf("no interpreter")}, result.Broken},
		{"another recording each time", suitetest.Faults{ScalarFromStep: true}, result.Refused},
		{"a recording of something else", suitetest.Faults{OtherPrecision: true}, result.Refused},
		{"native breaks", suitetest.Faults{CrashesOn: "fake"}, result.Broken},
		{"native panics", suitetest.Faults{PanicsOn: "fake"}, result.Broken},
		{"other bits, which are traced", suitetest.Faults{Native: suitetest.ULPs(1), NativeTrace: true}, result.Differs},
		{"noise, which is traced", suitetest.Faults{Noise: true, NoiseTrace: true}, result.EagerNoise},
	} {
		for _, together := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %v", c.name, together), func(t *testing.T) {
				memory := turns.NewMemory(gpu, 4)
				start := &suitetest.Starter{Faults: c.faults}
				s := &suite.Suite{Start: start, Timing: suite.DefaultTiming(), Together: together, Turns: turns.New(2, 1), Memory: memory}
				if r := s.Verify(t.Context(), fakeCell("cuda:0")); r.Verdict != c.verdict {
					t.Errorf("%s: %s", r.Verdict, r.Summary)
				}
				if start.Alive != 0 {
					t.Errorf("%d processes alive", start.Alive)
				}
				allFree(t, memory)
			})
		}
	}
	for _, device := range []string{"cuda:0", suite.HostDevice} {
		memory := turns.NewMemory(gpu, 4)
		s := &suite.Suite{Start: &suitetest.Starter{}, Timing: suite.DefaultTiming(), Turns: turns.New(2, 1), Memory: memory}
		if r := s.Verify(t.Context(), trainCell(device)); r.Verdict.Exit() != 0 {
			t.Errorf("%s: %s", r.Verdict, r.Summary)
		}
		allFree(t, memory)
	}
}

// The host is not the GPU, whose memory nobody asks for there.
func TestMemoryOfHost(t *testing.T) {
	memory := turns.NewMemory(gpu, 2)
	done, err := memory.Take(t.Context(), gpu, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	s := &suite.Suite{Start: &suitetest.Starter{}, Timing: suite.DefaultTiming(), Turns: turns.New(2, 1), Memory: memory}
	if r := s.Verify(t.Context(), fakeCell(suite.HostDevice)); r.Verdict != result.Consistent {
		t.Errorf("%s: %s", r.Verdict, r.Summary)
	}
}
