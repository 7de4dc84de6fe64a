package report

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"samebits/parity/result"
	"samebits/parity/suite"
)

// Progress shows how far the work on a number of cells is, several of which may be in work at once: bars on a terminal,
// plain lines elsewhere.
type Progress struct {
	out      io.Writer
	terminal bool
	cells    int // to verify
	width    int // of a bar

	finishing sync.Mutex // one result is written at a time

	mu     sync.Mutex
	quiet  bool          // a result is being written
	active map[int]*work // by the cell's number
	count  count
	bars   *mpb.Progress // nil while nothing is drawn
	total  *mpb.Bar

	// Bars read it while they draw. They must not wait for mu: who holds it may be waiting for them.
	drawn atomic.Pointer[count]
}

// work is a cell in work.
type work struct {
	said
	bar   *mpb.Bar
	drawn atomic.Pointer[said] // see Progress
}

// said is the last that was heard of a cell.
type said struct {
	event suite.Event
	began time.Time
}

func (s said) String() string {
	return fmt.Sprintf("%s %v", s.event.What, time.Since(s.began).Round(time.Second))
}

// short names a cell where there is little room.
func short(c suite.Cell) string {
	name := c.Family
	for _, part := range []struct{ before, text string }{{"-", c.Size}, {" ", c.Task}, {" ", c.Precision}} {
		if part.text != "" {
			name += part.before + part.text
		}
	}
	if c.Trains() {
		name += " train"
	}
	return name
}

// count is what is done of all.
type count struct {
	cells, finished int
	parts, done     int // parts of finished cells, and those before the last that others began
	began           time.Time
}

// left estimates how long the rest takes. The first cell must be finished: it says what parts take.
func (c count) left() string {
	if c.finished == 0 || c.done == 0 || c.finished == c.cells {
		return ""
	}
	rest := time.Duration(float64(time.Since(c.began)) * float64(c.parts-c.done) / float64(c.done))
	if rest < time.Minute {
		return fmt.Sprintf("about %d s left", max(int(rest.Seconds()), 1))
	}
	return fmt.Sprintf("about %.0f min left", rest.Minutes())
}

// NewProgress starts to show the work on cells, in which there are so many parts.
func NewProgress(out io.Writer, terminal bool, cells, parts int) *Progress {
	return &Progress{out: out, terminal: terminal, cells: cells, width: 14, active: map[int]*work{},
		count: count{cells: cells, parts: parts, began: time.Now()}}
}

// Show takes an event of a cell; its number counts from 0.
func (p *Progress) Show(number int, e suite.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.active[number]
	if w == nil {
		w = &work{said: said{began: time.Now()}}
		w.event.Step = 1
		p.active[number] = w
	}
	p.count.done += e.Step - w.event.Step
	w.event = e
	if !p.terminal {
		fmt.Fprintf(p.out, "[%d/%d] %v: step %d of %d, %s\n", number+1, p.cells, e.Cell, e.Step, e.Steps, e.What)
		return
	}
	p.draw()
}

// draw brings the bars up to date.
func (p *Progress) draw() {
	if p.quiet {
		return
	}
	counted := p.count
	p.drawn.Store(&counted)
	if p.bars == nil {
		p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(p.width), mpb.WithAutoRefresh())
		if p.cells > 1 {
			p.total = p.bars.AddBar(int64(p.count.parts), mpb.BarPriority(p.cells), // below the cells
				mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
					c := p.drawn.Load()
					return fmt.Sprintf("%d of %d cells ", c.finished, c.cells)
				})),
				mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.drawn.Load().left() })))
		}
	}
	for number, w := range p.active {
		now := w.said
		w.drawn.Store(&now)
		if w.bar == nil {
			w.bar = p.bars.AddBar(int64(w.event.Steps), mpb.BarPriority(number),
				mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
					return fmt.Sprintf("[%d/%d] %s ", number+1, p.cells, short(w.drawn.Load().event.Cell))
				})),
				mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return w.drawn.Load().String() })))
		}
		w.bar.SetCurrent(int64(w.event.Step - 1))
	}
	if p.total != nil {
		p.total.SetCurrent(int64(p.count.done))
	}
}

// Finished ends the work on a cell, and has its result written while nothing is drawn.
func (p *Progress) Finished(number int, r result.Result, write func() error) error {
	return p.Done(number, Title(r), string(r.Verdict), write)
}

// Done ends the work on a cell of this name, of which there is this to say, and has more written while nothing is drawn.
func (p *Progress) Done(number int, name, outcome string, write func() error) error {
	p.finishing.Lock()
	defer p.finishing.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.count.finished++
	if w := p.active[number]; w != nil {
		delete(p.active, number)
		p.count.done += w.event.Steps - w.event.Step + 1
		if !p.terminal && p.cells > 1 {
			line := fmt.Sprintf("[%d/%d] %s: %s after %v; %d of %d cells are finished", number+1, p.cells, name, outcome,
				time.Since(w.began).Round(time.Second), p.count.finished, p.cells)
			if left := p.count.left(); left != "" {
				line += ", " + left
			}
			fmt.Fprintln(p.out, line)
		}
	}
	p.quiet = true
	p.mu.Unlock()
	err := write()
	p.mu.Lock()
	p.quiet = false
	if p.terminal && len(p.active) > 0 {
		p.draw()
	}
	return err
}

// erase takes the bars from the terminal.
func (p *Progress) erase() {
	if p.bars == nil {
		return
	}
	for _, w := range p.active {
		if w.bar != nil {
			w.bar.Abort(true)
			w.bar = nil
		}
	}
	if p.total != nil {
		p.total.Abort(true)
		p.total = nil
	}
	p.bars.Wait()
	p.bars = nil
}
