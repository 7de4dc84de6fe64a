package report

import (
	"fmt"
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"samebits/parity/suite"
)

// Progress shows how far the work is: a bar for each cell on a terminal, plain lines elsewhere.
type Progress struct {
	out      io.Writer
	terminal bool
	cells    int

	mu   sync.Mutex
	bars *mpb.Progress
	bar  *mpb.Bar
	what string
	cell int
}

// NewProgress starts to show the work on a number of cells.
func NewProgress(out io.Writer, terminal bool, cells int) *Progress {
	return &Progress{out: out, terminal: terminal, cells: cells}
}

// Show takes an event of the suite.
func (p *Progress) Show(e suite.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Step == 1 {
		p.cell++
	}
	if !p.terminal {
		fmt.Fprintf(p.out, "[%d/%d] %v: step %d of %d, %s\n", p.cell, p.cells, e.Cell, e.Step, e.Steps, e.What)
		return
	}
	p.what = e.What
	if p.bar == nil {
		p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(24))
		p.bar = p.bars.AddBar(int64(e.Steps), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(fmt.Sprintf("[%d/%d] %v ", p.cell, p.cells, e.Cell))),
			mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return p.current() }), decor.Elapsed(decor.ET_STYLE_MMSS, decor.WC{W: 7})))
	}
	p.bar.SetCurrent(int64(e.Step - 1))
}

// current is read by the bar while it draws, which holds no lock of ours.
func (p *Progress) current() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.what
}

// Done ends the bar of a cell, so that its result can be printed.
func (p *Progress) Done() {
	p.mu.Lock()
	bar, bars := p.bar, p.bars
	p.bar, p.bars = nil, nil
	p.mu.Unlock()
	if bar != nil {
		bar.Abort(true)
		bars.Wait()
	}
}
