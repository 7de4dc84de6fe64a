package turns_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"samebits/parity/turns"
)

func must(t *testing.T, take func(context.Context) (func(), error)) func() {
	t.Helper()
	done, err := take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestAloneKeepsOthersOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := turns.New(1, 1)
		var order []string
		first, second := must(t, d.Share), must(t, d.Share)
		go func() {
			done := must(t, d.Alone)
			order = append(order, "alone")
			time.Sleep(time.Second)
			order = append(order, "alone no more")
			done()
		}()
		synctest.Wait()
		late := make(chan func())
		go func() { // comes after one who waits to be alone, and does not pass
			done := must(t, d.Share)
			order = append(order, "late")
			late <- done
		}()
		synctest.Wait()
		if len(order) != 0 {
			t.Fatalf("%v while two share", order)
		}
		first()
		synctest.Wait()
		if len(order) != 0 {
			t.Fatalf("%v while one shares", order)
		}
		second()
		synctest.Wait()
		if len(order) != 1 {
			t.Errorf("%v when nobody shares any more", order)
		}
		(<-late)()
		if got, want := order, []string{"alone", "alone no more", "late"}; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("order %v", got)
		}
	})
}

// Those who want the device alone are gathered while others share it, and then served one after the other.
func TestGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := turns.New(1, 2)
		sharing := must(t, d.Share)
		served := make(chan string, 8)
		alone := func(name string) {
			done := must(t, d.Alone)
			served <- name
			time.Sleep(time.Second)
			done()
		}
		go alone("first")
		synctest.Wait()
		must(t, d.Share)() // one alone is not enough to keep others off
		go alone("second")
		synctest.Wait()
		go func() {
			defer must(t, d.Share)()
			served <- "late"
		}()
		synctest.Wait()
		if len(served) != 0 {
			t.Fatalf("%s came before its turn", <-served)
		}
		sharing()
		for _, want := range []string{"first", "second", "late"} {
			if got := <-served; got != want {
				t.Errorf("%s instead of %s", got, want)
			}
		}
	})
}

// Nobody is let wait for others to gather when the device is free, or for ever.
func TestGatheringEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := turns.New(1, 5)
		must(t, d.Alone)() // it is free
		began := time.Now()
		busy := func() { // two who share it by turns, so that it is never free
			for time.Since(began) < time.Minute {
				done := must(t, d.Share)
				time.Sleep(2 * time.Second)
				done()
			}
		}
		var both sync.WaitGroup
		both.Go(busy)
		time.Sleep(time.Second)
		both.Go(busy)
		defer both.Wait()
		must(t, d.Alone)()
		if waited := time.Since(began); waited < 10*time.Second || waited > 30*time.Second {
			t.Errorf("it waited %v", waited)
		}
	})
}

// Whatever comes when, and whoever gives up: nobody is disturbed alone, and everybody comes to his turn.
func TestCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := turns.New(3, 3)
		var mu sync.Mutex
		sharing, alone, served := 0, 0, 0
		enter := func(byMyself bool) func() {
			mu.Lock()
			defer mu.Unlock()
			count := &sharing
			if byMyself {
				count = &alone
			}
			*count++
			served++
			if alone > 1 || alone == 1 && sharing > 0 {
				t.Errorf("%d alone, %d share", alone, sharing)
			}
			return func() {
				mu.Lock()
				defer mu.Unlock()
				*count--
			}
		}
		random := rand.New(rand.NewPCG(1, 2))
		var crowd sync.WaitGroup
		gaveUp := 0
		for range 400 {
			byMyself, wait, work := random.IntN(5) == 0, time.Duration(random.IntN(100))*time.Second, time.Duration(random.IntN(900))*time.Millisecond
			leaves := random.IntN(4) == 0
			crowd.Go(func() {
				time.Sleep(wait)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if leaves {
					time.AfterFunc(work, cancel)
				}
				take := d.Share
				if byMyself {
					take = d.Alone
				}
				done, err := take(ctx)
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					gaveUp++
					return
				}
				leave := enter(byMyself)
				time.Sleep(work)
				leave()
				done()
			})
		}
		crowd.Wait()
		if served+gaveUp != 400 || gaveUp == 0 || gaveUp > 100 {
			t.Errorf("%d were served, %d gave up", served, gaveUp)
		}
		must(t, d.Alone)()
	})
}

func TestPrepareIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := turns.New(2, 1)
		done := must(t, d.Prepare)
		must(t, d.Prepare)
		defer must(t, d.Alone)() // the device is another matter
		full := func(when string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := d.Prepare(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a third one%s: %v", when, err)
			}
		}
		full("")
		done()
		must(t, d.Prepare)
		full(", when one was done and another came")
		d = turns.New(0, 0) // one at least
		must(t, d.Prepare)
		full(" beside one")
	})
}

// Others who wait behind one that gives up come to their turn at once, not when somebody else ends.
func TestGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := turns.New(1, 1)
		defer must(t, d.Share)()
		ctx, cancel := context.WithCancel(t.Context())
		gaveUp, served := make(chan error, 1), make(chan bool, 1)
		go func() {
			_, err := d.Alone(ctx)
			gaveUp <- err
		}()
		synctest.Wait()
		go func() {
			defer must(t, d.Share)()
			served <- true
		}()
		synctest.Wait()
		if len(served) != 0 {
			t.Error("it passed one who waits to be alone")
		}
		cancel()
		synctest.Wait()
		if len(served) != 1 || !errors.Is(<-gaveUp, context.Canceled) {
			t.Error("it still waits for one who gave up")
		}
	})
}

func TestInterrupted(t *testing.T) {
	d := turns.New(1, 1)
	done := must(t, d.Share)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Alone(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("alone: %v", err)
	}
	done()
	must(t, d.Alone)() // who gave up waiting is not waited for
}

func TestNobodyElse(t *testing.T) {
	var d *turns.Turns
	for _, take := range []func(context.Context) (func(), error){d.Alone, d.Share, d.Prepare} {
		must(t, take)()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Share(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
