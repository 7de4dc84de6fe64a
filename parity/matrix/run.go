// Package matrix verifies many cells: which ones, how many at once, which are finished already, and the table of all.
package matrix

import (
	"context"

	"golang.org/x/sync/errgroup"

	"samebits/parity/result"
)

// Run verifies a number of cells, at most jobs of them at once, and hands over each result when it is there. When the context ends no
// further cell is begun. An error of done ends the run, too.
func Run(ctx context.Context, cells, jobs int, verify func(ctx context.Context, number int) result.Result,
	done func(number int, r result.Result) error) error {
	working, within := errgroup.WithContext(ctx)
	working.SetLimit(max(jobs, 1))
	for i := range cells {
		working.Go(func() error {
			if within.Err() != nil {
				return nil
			}
			return done(i, verify(within, i))
		})
	}
	return working.Wait()
}
