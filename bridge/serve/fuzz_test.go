package serve

import (
	"math"
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"samebits/bridge/arm"
	"samebits/bridge/fuzztest"
	"samebits/bridge/proto/convert"
	pb "samebits/bridge/proto/samebitsv1"
	"samebits/bridge/tensor"
)

// counter is an arm that looks at what its steps are given.
type counter struct {
	Unimplemented
	t              testing.TB
	inputs, output int // banks that there are
	steps          int
}

func (c *counter) Step(input, output int) error {
	c.steps++
	if input < 0 || input >= c.inputs || output < 0 || output >= c.output {
		c.t.Errorf("a step from bank %d to %d of %d and %d", input, output, c.inputs, c.output)
	}
	return nil
}

// FuzzStep writes anything into the control block, as a host gone wrong could: the arm gets banks that there are, or nothing.
func FuzzStep(f *testing.F) {
	good := make([]byte, 64)
	little.PutUint32(good[atMagic:], controlMagic)
	little.PutUint32(good[atLayout:], controlLayout)
	little.PutUint32(good[atCommand:], commandStep)
	f.Add(good, uint8(1), uint8(1))
	f.Add(make([]byte, 64), uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, block []byte, inputs, outputs uint8) {
		a := &counter{t: t, inputs: int(inputs), output: int(outputs)}
		l := &loop{arm: a, control: make([]byte, controlBytes), inputs: int(inputs), outputs: int(outputs)}
		copy(l.control, block)
		err := l.runStep()
		if (err == nil) != (a.steps == 1) {
			t.Errorf("%d steps, %v", a.steps, err)
		}
		if err != nil {
			_, problems := explain(err)
			fuzztest.Said(t, problems)
			if text := convert.EncodeProblems(problems, controlBytes-atText); len(text) > controlBytes-atText {
				t.Errorf("%d bytes of problems do not fit", len(text))
			}
		}
	})
}

// FuzzRegions attaches and asks for any regions: what is given lies in the memory, all of it.
func FuzzRegions(f *testing.F) {
	page := int64(os.Getpagesize())
	f.Add(page, page, page, int64(64), "x", uint32(1), int64(4), int64(4))
	f.Add(page, 2*page, 2*page, page, "x", uint32(10), int64(1<<40), int64(1<<40))
	f.Add(int64(math.MaxInt64), int64(1), int64(64), int64(math.MaxInt64), "", uint32(3), int64(-1), int64(0))
	f.Add(page, int64(math.MaxInt64)/page*page, int64(0), int64(-1), "", uint32(3), int64(0), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, offset, length, from, n int64, name string, dtype uint32, rows, columns int64) {
		fd, err := unix.MemfdCreate("fuzz", unix.MFD_CLOEXEC)
		if err != nil {
			t.Skip(err)
		}
		file := os.NewFile(uintptr(fd), "memory")
		defer file.Close()
		const size = 1 << 20
		if err := file.Truncate(size); err != nil {
			t.Fatal(err)
		}
		m := newMemory(file)
		defer func() {
			for _, r := range m.ranges {
				if err := unix.Munmap(r.bytes); err != nil {
					t.Error(err)
				}
			}
		}()
		if err := m.attach(Region{Offset: offset, Length: length}); err != nil {
			fuzztest.Said(t, err)
		} else if offset < controlBytes || offset+length > size {
			t.Errorf("%d+%d of %d bytes is attached", offset, length, size)
		}
		spec := tensor.Spec{Name: name, DType: tensor.DType(dtype), Sizes: []int64{rows, columns}}
		for _, get := range []func() ([]byte, error){
			func() ([]byte, error) { return m.Bytes(Region{Offset: from, Length: n}) },
			func() ([]byte, error) { return m.Tensor(Placed{Spec: spec, Region: Region{Offset: from, Length: n}}) },
		} {
			data, err := get()
			if err != nil {
				fuzztest.Said(t, err)
				continue
			}
			if int64(len(data)) != n || from < offset || from+n > offset+length {
				t.Fatalf("%d bytes for %d+%d in %d+%d", len(data), from, n, offset, length)
			}
			if n > 0 {
				data[0], data[n-1] = 1, 2 // it is mapped
			}
		}
	})
}

// FuzzPrepare sends any message as a request: the arm is called with banks that lie in the memory, and only then.
func FuzzPrepare(f *testing.F) {
	bank := arm.Bank{{Spec: tensor.Spec{Name: "images", DType: tensor.Float32, Sizes: []int64{2, 8}}, Region: Region{Offset: 4096, Length: 64}}}
	for _, r := range []arm.PrepareRequest{{}, {Inputs: []arm.Bank{bank}, Outputs: []arm.Bank{bank, bank}, CUDAGraph: true}} {
		data, err := proto.Marshal(convert.Prepare(r))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	memory := &Memory{ranges: []attached{{offset: 4096, bytes: make([]byte, 1<<16)}}}
	f.Fuzz(func(t *testing.T, data []byte) {
		var request pb.PrepareRequest
		if proto.Unmarshal(data, &request) != nil {
			return
		}
		s := &server{memory: memory}
		var r arm.PrepareRequest
		var err error
		fuzztest.Bounded(t, len(data), 1<<20, 400, func() {
			r = convert.PrepareFrom(&request)
			err = s.checkBanks(r)
		})
		if err != nil {
			_, problems := explain(err)
			fuzztest.Said(t, problems)
			return
		}
		for _, bank := range append(r.Inputs, r.Outputs...) {
			for _, p := range bank {
				if data, err := memory.Tensor(p); err != nil || int64(len(data)) != p.Bytes() {
					t.Errorf("%v of %d bytes was accepted: %v", p, len(data), err)
				}
			}
		}
	})
}
