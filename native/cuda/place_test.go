package cuda

import (
	"errors"
	"slices"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// placing is a list whose workspaces Options.Place lays from some offset on, one behind the other.
func placing(t *testing.T, from int64, wanted *[]int64) device.Options {
	o := exact
	o.Place = func(workspaces []int64) (device.Placement, error) {
		if *wanted != nil {
			t.Error("asked for places twice")
		}
		*wanted = slices.Clone(workspaces)
		out := device.Placement{Workspaces: make([]device.Pointer, len(workspaces))}
		for i, bytes := range workspaces {
			out.Workspaces[i] = at(from)
			from += (bytes + 511) / 512 * 512
		}
		return out, nil
	}
	return o
}

// TestPlace: workspaces lie where they are put, and no memory is taken, for trials neither.
func TestPlace(t *testing.T) {
	for _, test := range []struct {
		name, engines string
		wanted        int64 // by the convolution
		choice        string
	}{
		{name: "the first plan runs", engines: "6:", wanted: 384, choice: "ConvFwd_eng6"},
		{name: "no workspace", engines: "0:", choice: "ConvFwd_eng0"},
		{name: "one that builds and does not run", engines: "1000:;6:", wanted: 64000, choice: "ConvFwd_eng6"},
		{name: "the fallback list", engines: "-3:|8:", wanted: 512, choice: "ConvFwd_eng8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("FAKE_ENGINES", test.engines)
			d := openFake(t)
			const bytes = 80 << 20
			_, resolve := arena(t, d, bytes)
			var wanted []int64
			product := &device.Matmul{A: contiguous(0, tensor.Float32, 4, 100), B: contiguous(1<<20, tensor.Float32, 100, 512),
				D: contiguous(512<<10, tensor.Float32, 4, 512)}
			list := []device.Command{torchConvolution(tensor.Float32), product, torchLinear(tensor.Float32, 1),
				&device.Fill{To: at(0), Bytes: 4}}
			p := prepare(t, d, resolve, placing(t, 8<<20, &wanted), list...)
			if want := []int64{test.wanted, matmulWorkspace, linearWorkspace, 0}; !slices.Equal(wanted, want) {
				t.Errorf("wanted workspaces %v, want %v", wanted, want)
			}
			if got := p.Choices()[0]; len(got) < len(test.choice) || got[:len(test.choice)] != test.choice {
				t.Errorf("choice %q, want %q", got, test.choice)
			}
			if p.WorkspaceBytes() != 0 || d.Peak() != bytes {
				t.Errorf("workspace of %d bytes, peak %d, want none and %d", p.WorkspaceBytes(), d.Peak(), bytes)
			}
			if err := p.Run(0, len(list)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPlaceGivesNothing: then the program takes a workspace of its own, and still tries on the memory of its commands.
func TestPlaceGivesNothing(t *testing.T) {
	t.Setenv("FAKE_ENGINES", "6:")
	d := openFake(t)
	_, resolve := arena(t, d, 4<<20)
	o := exact
	o.Place = func([]int64) (device.Placement, error) { return device.Placement{}, nil }
	p := prepare(t, d, resolve, o, torchConvolution(tensor.Float32))
	if p.WorkspaceBytes() != 384 {
		t.Errorf("workspace of %d bytes, want 384", p.WorkspaceBytes())
	}
	if want := int64(4<<20 + 384); d.Peak() != want {
		t.Errorf("peak %d, want %d", d.Peak(), want)
	}
}

// TestPlaceChoosesLanes: the schedule is the placement's.
func TestPlaceChoosesLanes(t *testing.T) {
	d := openFake(t)
	m, resolve := arena(t, d, 4096)
	list, schedule := diamond()
	o := exact
	o.Place = func([]int64) (device.Placement, error) {
		return device.Placement{Workspaces: make([]device.Pointer, len(list)), Schedule: schedule}, nil
	}
	p := prepare(t, d, resolve, o, list...)
	if err := m.Write(0, floats(1, 2, 3, 4)); err != nil {
		t.Fatal(err)
	}
	if p.Run(0, 1) == nil {
		t.Error("a part of a list with lanes ran")
	}
	if err := p.Run(0, len(list)); err != nil {
		t.Fatal(err)
	}
	expect(t, m, 1536, floats(2*2+6*2, 32, 48, 64))
}

func TestPlaceThatFails(t *testing.T) {
	d := openFake(t)
	_, resolve := arena(t, d, 4<<20)
	o := exact
	full := errors.New("no room")
	o.Place = func([]int64) (device.Placement, error) { return device.Placement{}, full }
	if _, err := d.Prepare([]device.Command{torchConvolution(tensor.Float32)}, resolve, o); !errors.Is(err, full) {
		t.Errorf("error %v, want that of the placement", err)
	}
	// What is wrong with a command is told as ever.
	var wanted []int64
	wrong := torchConvolution(tensor.Float32)
	wrong.Groups = 3
	_, err := d.Prepare([]device.Command{wrong, torchConvolution(tensor.Float32)}, resolve, placing(t, 2<<20, &wanted))
	mustHave(t, err, "commands[0]", "3 groups")
}

// TestPlaceMayAllocate: memory is taken once workspaces are known; addresses of before count modulo 512 alone.
func TestPlaceMayAllocate(t *testing.T) {
	d := openFake(t)
	base := uintptr(1) << 40
	resolve := func(p device.Pointer) uintptr { return base + uintptr(p.Offset) }
	o := exact
	o.Place = func(workspaces []int64) (device.Placement, error) {
		m, err := d.Alloc(8<<20 + workspaces[0])
		if err != nil {
			return device.Placement{}, err
		}
		t.Cleanup(func() {
			if err := m.Free(); err != nil {
				t.Error(err)
			}
		})
		base = m.Address()
		return device.Placement{Workspaces: []device.Pointer{at(8 << 20)}}, nil
	}
	p := prepare(t, d, resolve, o, torchConvolution(tensor.Float32))
	if err := p.Run(0, 1); err != nil {
		t.Error(err)
	}
	if p.WorkspaceBytes() != 0 {
		t.Errorf("a workspace of %d bytes beside the one that was placed", p.WorkspaceBytes())
	}
}
