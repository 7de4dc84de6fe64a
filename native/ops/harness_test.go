package ops

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
	"samebits/native/devices"
)

// bench runs one operation on a device, on tensors of any layout, and gives back the bits:
//
//	b := newBench(t)
//	x := b.tensor(tensor.BFloat16, []int64{2, 3}, nil) // nil: contiguous
//	y := b.tensor(tensor.BFloat16, []int64{2, 3}, []int64{1, 2})
//	b.setFloats(x, []float64{1, 2, 3, 4, 5, 6}) // in logical order, rounded to the dtype
//	b.run(operation("aten::silu", args("self", x), results(y)))
//	got := b.floats(y)
//
// Every storage lies between guard bytes, and run fails if an operation wrote anything but the elements of its results and
// what its registration says that it writes.
// The device is host; SAMEBITS_TEST_DEVICE=cuda:0 runs the same tests on a GPU.
type bench struct {
	t         *testing.T
	recording recording.Recording
	bytes     [][]byte // content of each storage, before and after run
	dead      map[int]bool
	extra     []int64 // bytes of scratch storages
	options   Options
	then      *recording.Operation // what the operation's kernel does too
}

const guard = 64 // bytes on either side of each storage

func newBench(t *testing.T) *bench {
	t.Helper()
	return &bench{t: t, dead: map[int]bool{}}
}

// tensor adds a value on a storage of its own that is just large enough. Strides nil mean contiguous.
func (b *bench) tensor(dtype tensor.DType, sizes, strides []int64) int {
	if strides == nil {
		strides = tensor.ContiguousStrides(sizes)
	}
	return b.tensorAt(dtype, sizes, strides, 0)
}

// tensorAt is tensor at an offset in its storage, in elements: what lies before must stay as it is.
func (b *bench) tensorAt(dtype tensor.DType, sizes, strides []int64, offset int64) int {
	span := offset
	if tensor.Numel(sizes) > 0 {
		span++
		for d := range sizes {
			span += (sizes[d] - 1) * strides[d]
		}
	}
	content := make([]byte, span*dtype.Size())
	for i := range content {
		content[i] = 0xA5
	}
	b.recording.Storages = append(b.recording.Storages,
		recording.Storage{Bytes: int64(len(content)), Role: recording.Scratch, DType: dtype})
	b.bytes = append(b.bytes, content)
	b.recording.Values = append(b.recording.Values, recording.Value{
		Storage: len(b.recording.Storages) - 1, DType: dtype, Sizes: sizes, Strides: strides, Offset: offset})
	return len(b.recording.Values) - 1
}

// view adds a value on the storage of another.
func (b *bench) view(of int, sizes, strides []int64, offset int64) int {
	v := b.recording.Values[of]
	v.Sizes, v.Strides, v.Offset = sizes, strides, offset
	b.recording.Values = append(b.recording.Values, v)
	return len(b.recording.Values) - 1
}

// unneeded says that nothing reads a result.
func (b *bench) unneeded(value int) { b.dead[value] = true }

// element gives the bytes of each element of a value in logical order.
func (b *bench) element(value int) [][]byte {
	v := &b.recording.Values[value]
	size := v.DType.Size()
	list := make([][]byte, 0, v.Numel())
	eachOffset(v.Sizes, v.Strides, func(offset int64) {
		at := (v.Offset + offset) * size
		list = append(list, b.bytes[v.Storage][at:at+size])
	})
	return list
}

func eachOffset(sizes, strides []int64, visit func(int64)) {
	if len(sizes) == 0 {
		visit(0)
		return
	}
	for i := range sizes[0] {
		eachOffset(sizes[1:], strides[1:], func(inner int64) { visit(i*strides[0] + inner) })
	}
}

// setFloats writes elements in logical order, repeating data, rounded to the value's dtype.
func (b *bench) setFloats(value int, data []float64) {
	for i, e := range b.element(value) {
		putBits(e, encode(b.recording.Values[value].DType, data[i%len(data)]))
	}
}

// setBits writes raw elements in logical order, repeating data.
func (b *bench) setBits(value int, data []uint64) {
	for i, e := range b.element(value) {
		putBits(e, data[i%len(data)])
	}
}

// floats reads elements in logical order.
func (b *bench) floats(value int) []float64 {
	var list []float64
	for _, bits := range b.bits(value) {
		list = append(list, decode(b.recording.Values[value].DType, bits))
	}
	return list
}

// bits reads raw elements in logical order.
func (b *bench) bits(value int) []uint64 {
	var list []uint64
	for _, e := range b.element(value) {
		list = append(list, getBits(e))
	}
	return list
}

// lower gives the commands of an operation.
func (b *bench) lower(op recording.Operation) ([]device.Command, error) {
	b.t.Helper()
	known, ok := Lookup(op.Name)
	if !ok {
		b.t.Fatalf("%s is not registered", op.Name)
	}
	builder := NewBuilder(&b.recording, b)
	builder.Options, builder.Then = b.options, b.then
	err := known.Lower(builder, &op)
	return builder.Commands, err
}

// run lowers and runs an operation and reads every storage back.
func (b *bench) run(op recording.Operation) {
	b.t.Helper()
	if err := b.try(op); err != nil {
		b.t.Fatal(err)
	}
}

// try is run for an operation that may fail while it runs.
func (b *bench) try(op recording.Operation) error {
	b.t.Helper()
	commands, err := b.lower(op)
	if err != nil {
		b.t.Fatal(err)
	}
	at, total := b.layout()
	d := testDevice(b.t)
	memory, err := d.Alloc(total)
	if err != nil {
		b.t.Fatal(err)
	}
	defer memory.Free()
	image := bytes.Repeat([]byte{0x5A}, int(total))
	for s, content := range b.bytes {
		copy(image[at[s]:], content)
	}
	if err := memory.Write(0, image); err != nil {
		b.t.Fatal(err)
	}
	resolve := func(p device.Pointer) uintptr { return memory.Address() + uintptr(at[p.Storage]+p.Offset) }
	program, err := d.Prepare(commands, resolve, device.Options{Deterministic: true})
	if err != nil {
		b.t.Fatalf("%s: %v", describe(commands), err)
	}
	defer program.Close()
	if err := program.Run(0, len(commands)); err != nil {
		return err
	}
	if err := program.Wait(); err != nil {
		return err
	}
	after := make([]byte, total)
	if err := memory.Read(0, after); err != nil {
		b.t.Fatal(err)
	}
	written := recording.Values(op.Results, nil)
	if known, _ := Lookup(op.Name); known.Writes != nil {
		written = append(written, known.Writes(&op)...)
	}
	b.checkUntouched(written, at, image, after)
	for s := range b.bytes {
		copy(b.bytes[s], after[at[s]:])
	}
	return nil
}

// layout places storages, multiples of 512 apart, with guards, and scratch behind them.
func (b *bench) layout() (at []int64, total int64) {
	place := func(size int64) {
		at = append(at, total+512)
		total = (total + 512 + size + guard + 511) / 512 * 512
	}
	for _, content := range b.bytes {
		place(int64(len(content)))
	}
	for _, size := range b.extra {
		place(size)
	}
	return at, total
}

// checkUntouched fails if a byte changed that is no element of a needed result and not in scratch memory.
func (b *bench) checkUntouched(written []int, at []int64, before, after []byte) {
	b.t.Helper()
	mine := slices.Clone(before)
	for _, value := range written {
		if b.dead[value] {
			continue
		}
		v := &b.recording.Values[value]
		size := v.DType.Size()
		eachOffset(v.Sizes, v.Strides, func(offset int64) {
			o := at[v.Storage] + (v.Offset+offset)*size
			copy(mine[o:o+size], after[o:])
		})
	}
	for i, size := range b.extra {
		o := at[len(b.bytes)+i]
		copy(mine[o:o+size], after[o:])
	}
	for i := range mine {
		if mine[i] != after[i] {
			b.t.Fatalf("byte %d changed and is no element of a result (storages begin at %v)", i, at)
		}
	}
}

// Scratch implements Planner.
func (b *bench) Scratch(bytes int64) device.Pointer {
	b.extra = append(b.extra, bytes)
	return device.Pointer{Storage: len(b.bytes) + len(b.extra) - 1}
}

// Needed implements Planner.
func (b *bench) Needed(value int) bool { return !b.dead[value] }

// Precompute implements Planner: fill runs in its place.
func (b *bench) Precompute(_ *Builder, bytes int64, _ []int, fill func(device.Pointer)) device.Pointer {
	p := b.Scratch(bytes)
	fill(p)
	return p
}

func describe(commands []device.Command) string {
	var s []string
	for _, c := range commands {
		if k, ok := c.(*device.Kernel); ok {
			s = append(s, k.Entry)
		} else {
			s = append(s, fmt.Sprintf("%T", c))
		}
	}
	return fmt.Sprint(s)
}

// testDevice opens the device that SAMEBITS_TEST_DEVICE names, once for all tests.
func testDevice(t *testing.T) device.Device {
	t.Helper()
	d, err := openTestDevice()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var openTestDevice = sync.OnceValues(func() (device.Device, error) {
	name := os.Getenv("SAMEBITS_TEST_DEVICE")
	if name == "" {
		name = "host"
	}
	return devices.Open(name)
})
