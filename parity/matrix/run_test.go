package matrix_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"samebits/parity/matrix"
	"samebits/parity/result"
)

func TestRunIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, finished atomic.Int32
		verify := func(context.Context, int) result.Result {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			now.Add(-1)
			return result.Result{Verdict: result.Broken}
		}
		began := time.Now()
		err := matrix.Run(t.Context(), 10, 3, verify, func(int, result.Result) error { finished.Add(1); return nil })
		if err != nil || finished.Load() != 10 || most.Load() != 3 || time.Since(began) != 4*time.Second {
			t.Errorf("%v, %d cells finished, %d at once, in %v", err, finished.Load(), most.Load(), time.Since(began))
		}
	})
}

func TestRunInOrderOneAfterTheOther(t *testing.T) {
	var order []int
	verify := func(context.Context, int) result.Result { return result.Result{} }
	err := matrix.Run(t.Context(), 4, 1, verify, func(number int, _ result.Result) error { order = append(order, number); return nil })
	if err != nil || len(order) != 4 || order[0] != 0 || order[3] != 3 {
		t.Errorf("%v, %v", order, err)
	}
}

func TestRunStops(t *testing.T) {
	for _, c := range []struct {
		name string
		stop func(cancel func()) error // by done of the second cell
		err  bool
	}{
		{"interrupted", func(cancel func()) error { cancel(); return nil }, false},
		{"a result cannot be kept", func(func()) error { return errors.New("the disk is full") }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var mu sync.Mutex
			begun := 0
			verify := func(context.Context, int) result.Result {
				mu.Lock()
				defer mu.Unlock()
				begun++
				return result.Result{}
			}
			err := matrix.Run(ctx, 10, 1, verify, func(number int, _ result.Result) error {
				if number == 1 {
					return c.stop(cancel)
				}
				return nil
			})
			if (err != nil) != c.err || begun != 2 {
				t.Errorf("%v, %d cells were begun", err, begun)
			}
		})
	}
}
