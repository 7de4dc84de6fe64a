package report

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"samebits/parity/ops"
)

// OpsProgress shows how many operations were compared: a bar on a terminal, a line now and then elsewhere.
type OpsProgress struct {
	out      io.Writer
	terminal bool
	bars     *mpb.Progress
	bar      *mpb.Bar
	said     time.Time
}

// NewOpsProgress starts to show a comparison.
func NewOpsProgress(out io.Writer, terminal bool) *OpsProgress {
	return &OpsProgress{out: out, terminal: terminal, said: time.Now()}
}

// quiet is how long nothing is said where there is no terminal.
const quiet = 10 * time.Second

// Show takes an event.
func (p *OpsProgress) Show(e ops.Event) {
	if !p.terminal {
		if time.Since(p.said) >= quiet {
			p.said = time.Now()
			fmt.Fprintf(p.out, "%d of %d signatures, %d failed\n", e.Done, e.Of, e.Failed)
		}
		return
	}
	if p.bar == nil {
		p.bars = mpb.New(mpb.WithOutput(p.out), mpb.WithWidth(24))
		p.bar = p.bars.AddBar(int64(e.Of), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.CountersNoUnit("%d of %d signatures ")),
			mpb.AppendDecorators(decor.AverageETA(decor.ET_STYLE_MMSS)))
	}
	p.bar.SetCurrent(int64(e.Done))
}

// Done ends the bar.
func (p *OpsProgress) Done() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}
