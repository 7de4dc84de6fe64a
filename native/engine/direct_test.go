package engine

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/recording"
	rt "samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// direct is a device that notes what is asked of its programs' streams.
type direct struct {
	slow
	notes *[]string
}

func (d direct) Prepare(list []device.Command, _ device.Resolve, o device.Options) (device.Program, error) {
	if _, err := o.Place(make([]int64, len(list))); err != nil {
		return nil, err
	}
	return &directProgram{slowProgram{calls: d.calls}, d.notes}, nil
}

type directProgram struct {
	slowProgram
	notes *[]string
}

func (p *directProgram) CopyAsync(to, from uintptr, n int64) error {
	*p.notes = append(*p.notes, fmt.Sprintf("copy %d to %#x from %#x", n, to, from))
	return nil
}
func (p *directProgram) After(stream uintptr) error {
	*p.notes = append(*p.notes, fmt.Sprint("after ", stream))
	return nil
}
func (p *directProgram) Before(stream uintptr) error {
	*p.notes = append(*p.notes, fmt.Sprint("before ", stream))
	return nil
}

// turned adds two inputs and shows the sum turned.
func turned() *recording.Recording {
	b := rt.New("cpu")
	f32 := tensor.Float32
	x, y, sum := b.Tensor(recording.Input, "x", f32, 2, 3), b.Tensor(recording.Input, "y", f32, 2, 3), b.Scratch(f32, 2, 3)
	unread := b.Tensor(recording.Input, "empty", f32, 0, 3)
	b.Op("aten::add.Tensor", rt.Args(rt.Value("self", x), rt.Value("other", y), rt.Int("alpha", 1)), sum)
	part := b.View(sum, []int64{2, 2}, []int64{1, 3}, 1)
	b.Op("aten::as_strided", rt.Args(rt.Value("self", sum)), part)
	b.Input("x", x)
	b.Input("y", y)
	b.Input("empty", unread)
	b.Output("part", part)
	return b.R
}

func loadDirect(t *testing.T, dev device.Device) *Model {
	t.Helper()
	m, err := Load(dev, turned(), func(string) ([]byte, bool) { return nil, false }, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func TestPlaces(t *testing.T) {
	m := loadDirect(t, direct{slow{calls: new([]string)}, new([]string)})
	x, y, out := m.InputPlace(0), m.InputPlace(1), m.OutputPlace(0)
	if x.Bytes != 24 || y.Bytes != 24 || x.Address == y.Address || x.Address == 0 {
		t.Errorf("inputs lie at %+v and %+v", x, y)
	}
	if !slices.Equal(out.Strides, []int64{1, 3}) || out.Bytes != 5*4 {
		t.Errorf("the output lies at %+v; from its first to its last element are 5", out)
	}
	if p := m.InputPlace(2); p.Bytes != 0 || p.Address != 0 {
		t.Errorf("an empty input lies at %+v", p)
	}
	// A place is where the other calls write.
	data := bytes.Repeat([]byte{7}, 24)
	if err := m.WriteInput(1, data); err != nil {
		t.Fatal(err)
	}
	at := int64(y.Address - m.arena.Address())
	if !bytes.Equal(m.arena.(block)[at:at+24], data) {
		t.Error("the input's place has not what was written to the input")
	}
}

func TestDirectCopies(t *testing.T) {
	var notes []string
	m := loadDirect(t, direct{slow{calls: new([]string)}, &notes})
	x, out := m.InputPlace(0).Address, m.OutputPlace(0).Address
	for _, err := range []error{
		m.After(5), m.WriteInputAt(0, 0xabc), m.WriteInputAt(0, x), m.WriteInputAt(2, 0xabc), m.ReadOutputAt(0, 0xdef),
		m.ReadOutputAt(0, out), m.Before(5),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"after 5", fmt.Sprintf("copy 24 to %#x from 0xabc", x), fmt.Sprintf("copy 20 to 0xdef from %#x", out), "before 5"}
	if !slices.Equal(notes, want) {
		t.Errorf("asked for %q, want %q: nothing is copied onto itself, or of no size", notes, want)
	}
}

func TestDevicesWithoutDirectCopies(t *testing.T) {
	m := loadDirect(t, named{slow{calls: new([]string)}})
	for name, err := range map[string]error{
		"write": m.WriteInputAt(0, 1), "read": m.ReadOutputAt(0, 1), "after": m.After(0), "before": m.Before(0),
	} {
		if err == nil || !strings.Contains(err.Error(), "device plain") {
			t.Errorf("%s gave %v", name, err)
		}
	}
}

type named struct{ slow }

func (named) Name() string { return "plain" }

func TestZeroInput(t *testing.T) {
	m := loadDirect(t, direct{slow{calls: new([]string)}, new([]string)})
	if err := m.Poison(); err != nil {
		t.Fatal(err)
	}
	for i := range m.Inputs {
		if err := m.ZeroInput(i); err != nil { // also the empty one
			t.Fatal(err)
		}
	}
	arena := m.arena.(block)
	zeros := bytes.Count(arena, []byte{0})
	if want := int(m.InputPlace(0).Bytes + m.InputPlace(1).Bytes); zeros != want {
		t.Errorf("%d bytes are zero, the inputs have %d", zeros, want)
	}
}
