package cuda

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// saxpyAt adds 2*x to y, 4 elements each.
func saxpyAt(x, y int64) *device.Kernel {
	k := saxpy()
	k.Args = []any{at(x), at(y), float32(2), int32(4)}
	return k
}

// diamond fills four blocks, adds the first to two others side by side, and both of these to the last.
func diamond() ([]device.Command, *device.Schedule) {
	list := []device.Command{
		&device.Fill{To: at(512), Bytes: 3 * 512},
		saxpyAt(0, 512),     // lane 0
		saxpyAt(0, 1024),    // lane 1
		saxpyAt(1024, 1024), // lane 1
		saxpyAt(512, 1536),  // lane 0
		saxpyAt(1024, 1536), // lane 0
	}
	return list, &device.Schedule{
		Lanes: 3, // the third has nothing to do
		Lane:  []uint8{0, 0, 1, 1, 0, 0},
		Waits: [][]int32{nil, nil, {0}, nil, nil, {2, 3, 4}},
	}
}

func TestLanes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "streams")
	d := openFake(t)
	m, resolve := arena(t, d, 4096)
	list, schedule := diamond()
	p := prepare(t, d, resolve, device.Options{Schedule: schedule}, list...)
	if err := m.Write(0, floats(1, 2, 3, 4)); err != nil {
		t.Fatal(err)
	}
	calls := func(run func() error) []string {
		t.Setenv("FAKE_STREAMS", path)
		err := run()
		t.Setenv("FAKE_STREAMS", "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	eager := calls(func() error { return p.Run(0, len(list)) })
	// Streams are counted from the device's own, which is 0; events as they are made.
	want := []string{
		"1: record 0", "2: wait 0", // the lanes start where the program's stream is
		"1: set", "1: record 2",
		"1: launch",
		"2: wait 2", "2: launch",
		"2: launch", "2: record 3",
		"1: launch",
		"1: wait 3", "1: launch",
		"2: record 1", "1: wait 1", // and end before it goes on
	}
	if !slices.Equal(eager, want) {
		t.Errorf("calls are\n%s\nwant\n%s", strings.Join(eager, "\n"), strings.Join(want, "\n"))
	}
	expect(t, m, 1536, floats(2*2+6*2, 32, 48, 64))
	nodes := 0
	captured := calls(func() (err error) { nodes, err = p.Capture(); return err })
	if !slices.Equal(captured, want) {
		t.Errorf("a capture calls\n%s\nwant\n%s", strings.Join(captured, "\n"), strings.Join(want, "\n"))
	}
	if nodes != len(list) {
		t.Errorf("%d nodes, want %d", nodes, len(list))
	}
	if err := m.Write(0, floats(4, 3, 2, 1)); err != nil {
		t.Fatal(err)
	}
	if err := p.Replay(); err != nil {
		t.Fatal(err)
	}
	expect(t, m, 1536, floats(64, 48, 32, 16))
	mustHave(t, p.Run(0, 3), "commands 0 to 3 of a list of 6 with lanes, which runs as a whole")
}

func TestOneLaneIsNoSchedule(t *testing.T) {
	d := openFake(t)
	_, resolve := arena(t, d, 4096)
	list, schedule := diamond()
	schedule.Lanes, schedule.Lane = 1, make([]uint8, len(list))
	p := prepare(t, d, resolve, device.Options{Schedule: schedule}, list...)
	if err := p.Run(1, 2); err != nil {
		t.Errorf("a part of a list on one lane: %v", err)
	}
}

func TestWrongSchedules(t *testing.T) {
	d := openFake(t)
	_, resolve := arena(t, d, 4096)
	for _, test := range []struct {
		name   string
		change func(*device.Schedule)
		want   string
	}{
		{"a lane too many", func(s *device.Schedule) { s.Lane[2] = 3 }, "command 2 is on lane 3 of 3"},
		{"a wait for the future", func(s *device.Schedule) { s.Waits[2] = []int32{4} }, "command 2 waits for command 4"},
		{"a wait for itself", func(s *device.Schedule) { s.Waits[2] = []int32{2} }, "command 2 waits for command 2"},
		{"too short", func(s *device.Schedule) { s.Waits = s.Waits[:5] }, "6 lanes and 5 waits for a list of 6"},
	} {
		t.Run(test.name, func(t *testing.T) {
			list, schedule := diamond()
			test.change(schedule)
			_, err := d.Prepare(list, resolve, device.Options{Schedule: schedule})
			mustHave(t, err, test.want)
		})
	}
}

// TestLaneFailures holds that a failure on one lane leaves none behind, in a run and in a capture.
func TestLaneFailures(t *testing.T) {
	d := openFake(t)
	m, resolve := arena(t, d, 4096)
	list, schedule := diamond()
	list[3] = &device.Kernel{File: "good", Entry: "stall", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	p := prepare(t, d, resolve, device.Options{Schedule: schedule}, list...)
	_, err := p.Capture()
	mustHave(t, err, "commands[3]: CAPTURE_FAILED: kernel stall", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
	if err := m.Write(0, floats(1, 1, 1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := p.Run(0, len(list)); err != nil {
		t.Fatalf("the program does not run eagerly after a failed capture: %v", err)
	}
	expect(t, m, 1536, floats(8, 8, 8, 8))

	list, schedule = diamond()
	list[3].(*device.Kernel).Block[0] = 512
	p = prepare(t, d, resolve, device.Options{Schedule: schedule}, list...)
	mustHave(t, p.Run(0, len(list)), "commands[3]: LAUNCH_FAILED: kernel saxpy")
	_, err = p.Capture()
	mustHave(t, err, "commands[3]: CAPTURE_FAILED: kernel saxpy")
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
}

// TestLanesHaveTheirOwnWorkspace holds that calls that may run at the same time share none, and that each lane tries
// what it will run.
func TestLanesHaveTheirOwnWorkspace(t *testing.T) {
	t.Setenv("FAKE_ENGINES", "72:") // of 4608 bytes
	calls := logCalls(t)
	d := openFake(t)
	_, resolve := arena(t, d, 8<<20)
	list := []device.Command{
		torchConvolution(tensor.Float32), torchConvolution(tensor.Float32), torchConvolution(tensor.Float32),
		torchLinear(tensor.Float32, 1), torchLinear(tensor.Float32, 1),
	}
	p := prepare(t, d, resolve, device.Options{Deterministic: true, Schedule: &device.Schedule{
		Lanes: 4, Lane: []uint8{0, 1, 1, 1, 3}, Waits: make([][]int32, len(list)),
	}}, list...)
	if want := int64(4608 + linearWorkspace + linearWorkspace); p.WorkspaceBytes() != want {
		t.Errorf("workspace %d, want %d: of lanes 0, 1 and 3", p.WorkspaceBytes(), want)
	}
	plans, packs, heuristics, matmuls := 0, 0, 0, 0
	for _, call := range calls() {
		switch {
		case strings.HasPrefix(call, "5.401 "):
			plans++
		case strings.HasPrefix(call, "16.1003 "):
			packs++
		case strings.HasPrefix(call, "heuristic "):
			heuristics++
		case strings.HasPrefix(call, "matmul "):
			matmuls++
		}
	}
	if plans != 1 || packs != 2+3 || heuristics != 1 || matmuls != 2 {
		t.Errorf("%d plans, %d packs, %d heuristics and %d products; one signature each on two lanes", plans, packs, heuristics, matmuls)
	}
	if err := p.Run(0, len(list)); err != nil {
		t.Fatal(err)
	}
	if nodes, err := p.Capture(); err != nil || nodes != len(list) {
		t.Errorf("%d nodes, %v", nodes, err)
	}
}
