package turns_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"samebits/parity/turns"
)

// notes are what happened, in its order.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lines
}

// hold takes memory for a second, and notes when it was had and given back.
func hold(t *testing.T, m *turns.Memory, name string, bytes int64, n *notes) {
	t.Helper()
	done, err := m.Take(t.Context(), bytes, func() { n.add(name + " waits") })
	if err != nil {
		t.Error(err)
		return
	}
	n.add(name)
	time.Sleep(time.Second)
	n.add(name + " ends")
	done()
}

func TestMemory(t *testing.T) {
	type taker struct {
		name  string
		bytes int64
	}
	for _, c := range []struct {
		name   string
		takers []taker // one after the other
		want   []string
	}{
		{"two heavy ones", []taker{{"a", 60}, {"b", 60}}, []string{"a", "b waits", "a ends", "b", "b ends"}},
		{"light ones", []taker{{"a", 30}, {"b", 30}, {"c", 40}}, []string{"a", "b", "c", "a ends", "b ends", "c ends"}},
		{"more than there is", []taker{{"a", 1 << 60}, {"b", 1}}, []string{"a", "b waits", "a ends", "b", "b ends"}},
		{"more than there is, later", []taker{{"a", 1}, {"b", 1 << 60}}, []string{"a", "b waits", "a ends", "b", "b ends"}},
		{"nobody passes one who needs much", []taker{{"a", 60}, {"b", 100}, {"c", 10}},
			[]string{"a", "b waits", "c waits", "a ends", "b", "b ends", "c", "c ends"}},
		{"less than nothing", []taker{{"a", 100}, {"b", -1}}, []string{"a", "b", "a ends", "b ends"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := turns.NewMemory(100, 4)
				var n notes
				for i, taker := range c.takers {
					go func() {
						time.Sleep(time.Duration(i) * time.Millisecond)
						hold(t, m, taker.name, taker.bytes, &n)
					}()
				}
				time.Sleep(time.Minute)
				if got := n.all(); !slices.Equal(got, c.want) {
					t.Errorf("%q instead of %q", got, c.want)
				}
			})
		})
	}
}

// Who gives up while he waits has taken nothing, and those behind him are not kept waiting.
func TestMemoryNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := turns.NewMemory(100, 2)
		var n notes
		go hold(t, m, "a", 60, &n)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := m.Take(ctx, 100, func() {})
			failed <- err
		}()
		synctest.Wait()
		go hold(t, m, "b", 40, &n)
		time.Sleep(time.Millisecond) // so that b ends behind a
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
		time.Sleep(time.Minute)
		if got, want := n.all(), []string{"a", "b waits", "b", "a ends", "b ends"}; !slices.Equal(got, want) {
			t.Errorf("%q instead of %q", got, want)
		}
		hold(t, m, "all", 100, &n)
		if slices.Contains(n.all(), "all waits") {
			t.Error("something was not given back")
		}
	})
}

func TestMemoryOfNobody(t *testing.T) {
	for _, m := range []*turns.Memory{nil, turns.NewMemory(0, 4), turns.NewMemory(100, 1)} {
		if m != nil || m.Share() != 0 {
			t.Errorf("%+v", m)
		}
		done, err := m.Take(t.Context(), 1<<60, func() { t.Error("it waits") })
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
	if m := turns.NewMemory(100, 4); m.Share() != 25 {
		t.Errorf("a share of %d", m.Share())
	}
}
