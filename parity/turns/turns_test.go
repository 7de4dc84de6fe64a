package turns_test

import (
	"context"
	"errors"
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
		d := turns.New(1)
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
		(<-late)()
		if got, want := order, []string{"alone", "alone no more", "late"}; len(got) != 3 || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
			t.Errorf("order %v", got)
		}
	})
}

func TestPrepareIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := turns.New(2)
		done := must(t, d.Prepare)
		must(t, d.Prepare)
		defer must(t, d.Alone)() // the device is another matter
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.Prepare(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third one: %v", err)
		}
		done()
		must(t, d.Prepare)
	})
}

func TestInterrupted(t *testing.T) {
	d := turns.New(1)
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
