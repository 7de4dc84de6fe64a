package devicetest

import (
	"slices"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/native/device"
)

func misuseLaunch(t *testing.T, b *bench) {
	out := storage(b, make([]uint64, 64))
	wide := func(grid, block [3]uint32) *device.Kernel {
		return &device.Kernel{File: "check", Entry: "check_geometry", Grid: grid, Block: block, Args: []any{out}}
	}
	one := [3]uint32{1, 1, 1}
	for _, c := range []struct {
		name   string
		launch *device.Kernel
		says   string // part of the error
	}{
		{"unknown file", &device.Kernel{File: "no_such_file", Entry: "x", Grid: one, Block: one}, "no_such_file"},
		{"unknown entry", kernel("check_nothing", 1, 1, 0, out), "check_nothing"},
		{"too few arguments", kernel("check_count", 1, 1, 0), "check_count"},
		{"too many arguments", kernel("check_count", 1, 1, 0, out, int32(1)), "check_count"},
		{"an argument of another size", kernel("check_geometry", 1, 1, 0, int32(1)), "check_geometry"},
		{"an argument of no kind", kernel("check_geometry", 1, 1, 0, "text"), "check_geometry"},
		{"no grid", wide([3]uint32{0, 1, 1}, one), "check_geometry"},
		{"no block", wide(one, [3]uint32{1, 0, 1}), "check_geometry"},
		{"large grid", wide([3]uint32{1, 65536, 1}, one), "check_geometry"},
		{"large block", wide(one, [3]uint32{33, 32, 1}), "check_geometry"},
		{"much shared memory", kernel("check_geometry", 1, 1, 1<<20, out), "check_geometry"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fine := kernel("check_geometry", 1, 1, 0, out)
			p, err := b.Prepare([]device.Command{fine, c.launch}, b.resolve, device.Options{})
			if err == nil {
				p.Close()
				t.Fatalf("prepared")
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not name %s: %v", c.says, err)
			}
			if _, ok := diag.Of(err); !ok {
				t.Errorf("the error is no problem: %v", err)
			}
		})
	}
}

func misuseRange(t *testing.T, b *bench) {
	counter := storage(b, []int32{0})
	p := b.prepare(count(counter))
	for _, r := range [][2]int{{-1, 1}, {0, 2}, {1, 0}, {2, 2}} {
		if p.Run(r[0], r[1]) == nil {
			t.Errorf("ran commands %d to %d of 1", r[0], r[1])
		}
	}
	b.must(p.Wait())
	if got := read[int32](b, counter, 1); got[0] != 0 {
		t.Errorf("a refused run ran")
	}
}

func misuseReplay(t *testing.T, b *bench) {
	p := b.prepare(count(storage(b, []int32{0})))
	if p.Replay() == nil {
		t.Errorf("replayed what was never captured")
	}
}

func misuseAfterClose(t *testing.T, b *bench) {
	p := b.prepare(count(storage(b, []int32{0})))
	b.programs = nil
	b.must(p.Close())
	if p.Run(0, 1) == nil {
		t.Errorf("a closed program runs")
	}
	if _, err := p.Capture(); err == nil {
		t.Errorf("a closed program captures")
	}
	if p.Replay() == nil {
		t.Errorf("a closed program replays")
	}
}

func reportEnvironment(t *testing.T, b *bench) {
	if b.Name() == "" {
		t.Errorf("no name")
	}
	settings := b.Environment()
	if len(settings) == 0 {
		t.Errorf("no environment")
	}
	if !slices.IsSortedFunc(settings, func(a, b device.Setting) int { return strings.Compare(a.Key, b.Key) }) {
		t.Errorf("settings are not sorted: %v", settings)
	}
	for _, s := range settings {
		if s.Key == "" || strings.ContainsAny(s.Value, "\n") {
			t.Errorf("bad setting %q", s)
		}
	}
}

func reportChoices(t *testing.T, b *bench) {
	p := b.prepare(count(storage(b, []int32{0})), &device.Fill{To: storage(b, []int32{0}), Bytes: 4})
	if got := len(p.Choices()); got != 0 && got != 2 {
		t.Errorf("%d choices for 2 commands", got)
	}
	if p.WorkspaceBytes() < 0 {
		t.Errorf("workspace of %d bytes", p.WorkspaceBytes())
	}
}
