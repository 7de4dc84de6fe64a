package report

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"samebits/parity/result"
	"samebits/parity/suite"
)

func event(family string, step int) suite.Event {
	return suite.Event{Cell: suite.Cell{Family: family, Precision: "fp32", Device: "host"}, Step: step, Steps: 6, What: fmt.Sprint("part ", step)}
}

func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := NewProgress(&out, false, 3, 18)
		write := func() error { fmt.Fprintln(&out, "-- a result"); return nil }
		p.Show(0, event("a", 1))
		p.Show(1, event("b", 1))
		time.Sleep(90 * time.Second)
		p.Show(1, event("b", 4))
		if err := p.Finished(0, result.Result{Family: "a", Batch: 1, Precision: "fp32", Device: "host", Verdict: result.Consistent}, write); err != nil {
			t.Fatal(err)
		}
		want := `[1/3] a batch 1 fp32 on host: step 1 of 6, part 1
[2/3] b batch 1 fp32 on host: step 1 of 6, part 1
[2/3] b batch 1 fp32 on host: step 4 of 6, part 4
[1/3] a batch 1 fp32 on host: consistent after 1m30s; 1 of 3 cells are finished, about 2 min left
-- a result
`
		if out.String() != want {
			t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
		}
		full := errors.New("the disk is full")
		if err := p.Finished(1, result.Result{}, func() error { return full }); !errors.Is(err, full) {
			t.Error(err)
		}
	})
}

// One cell needs no table and no estimate.
func TestLinesOfOneCell(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, false, 1, 6)
	p.Show(0, event("a", 1))
	if err := p.Finished(0, result.Result{}, func() error { return nil }); err != nil || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// terminal takes what is drawn.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (w *terminal) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(p)
}

func (w *terminal) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// Bars of several cells are drawn and erased, and nothing is drawn while a result is written.
func TestBars(t *testing.T) {
	var screen terminal
	p := NewProgress(&screen, true, 8, 48)
	p.width = 120 // of everything, where the output is no terminal
	var working sync.WaitGroup
	for i := range 8 {
		working.Go(func() {
			for step := 1; step <= 6; step++ {
				p.Show(i, event(fmt.Sprint("family", i), step))
				time.Sleep(time.Duration(i+1) * 40 * time.Millisecond)
			}
			err := p.Finished(i, result.Result{Verdict: result.Exact}, func() error {
				before := screen.String()
				time.Sleep(200 * time.Millisecond) // longer than bars wait between drawings
				if screen.String() != before {
					t.Error("bars were drawn while a result was written")
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	working.Wait()
	text := screen.String()
	for _, want := range []string{"[1/8] family0", "[8/8] family7", "of 8 cells", "part 6", "left"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q was never drawn", want)
		}
	}
	if p.bars != nil || len(p.active) != 0 {
		t.Error("something is still drawn")
	}
	if !regexp.MustCompile(`7 of 8 cells`).MatchString(text) {
		t.Error("the total does not count")
	}
}
