package engine

import (
	"bytes"
	"slices"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// slow is a device whose copies on a stream happen at Wait only, and which writes down what is asked of it.
type slow struct {
	device.Device
	calls *[]string
}

type block []byte

func (b block) Bytes() int64                      { return int64(len(b)) }
func (b block) Address() uintptr                  { return 1 << 20 }
func (b block) Write(at int64, data []byte) error { copy(b[at:], data); return nil }
func (b block) Read(at int64, data []byte) error  { copy(data, b[at:]); return nil }
func (b block) Fill(at, n int64, value byte) error {
	for i := range n {
		b[at+i] = value
	}
	return nil
}
func (b block) Free() error { return nil }

func (s slow) Alloc(n int64) (device.Memory, error) { return make(block, n), nil }
func (s slow) Prepare(list []device.Command, _ device.Resolve, o device.Options) (device.Program, error) {
	if _, err := o.Place(make([]int64, len(list))); err != nil {
		return nil, err
	}
	return &slowProgram{calls: s.calls}, nil
}

// blocking is the same device without copies on a stream.
type blocking struct{ slow }

func (b blocking) Prepare(list []device.Command, _ device.Resolve, o device.Options) (device.Program, error) {
	if _, err := o.Place(make([]int64, len(list))); err != nil {
		return nil, err
	}
	return struct{ device.Program }{&slowProgram{calls: b.calls}}, nil
}

type slowProgram struct {
	device.Program
	calls   *[]string
	pending []func()
}

func (p *slowProgram) note(call string)      { *p.calls = append(*p.calls, call) }
func (p *slowProgram) Run(int, int) error    { p.note("run"); return nil }
func (p *slowProgram) WorkspaceBytes() int64 { return 0 }
func (p *slowProgram) Close() error          { return nil }
func (p *slowProgram) Wait() error {
	p.note("wait")
	for _, f := range p.pending {
		f()
	}
	p.pending = nil
	return nil
}
func (p *slowProgram) WriteAsync(m device.Memory, at int64, data []byte) error {
	p.note("write")
	p.pending = append(p.pending, func() { _ = m.Write(at, data) })
	return nil
}
func (p *slowProgram) ReadAsync(m device.Memory, at int64, data []byte) error {
	p.note("read")
	p.pending = append(p.pending, func() { _ = m.Read(at, data) })
	return nil
}

// mirror is a recording whose output is its input, or the input's transpose.
func mirror(transposed bool) *recording.Recording {
	r := &recording.Recording{
		Storages:   []recording.Storage{{Bytes: 6, Role: recording.Input, Name: "x", DType: tensor.Uint8}},
		Values:     []recording.Value{{DType: tensor.Uint8, Sizes: []int64{2, 3}, Strides: []int64{3, 1}, Alignment: 512}},
		Inputs:     []recording.Named{{Name: "x", Value: 0}},
		Outputs:    []recording.Named{{Name: "y", Value: 0}},
		Operations: nil,
	}
	if transposed {
		r.Values = append(r.Values, recording.Value{DType: tensor.Uint8, Sizes: []int64{3, 2}, Strides: []int64{1, 3}, Alignment: 512})
		r.Outputs[0].Value = 1
	}
	return r
}

func TestFeedAndFetch(t *testing.T) {
	for _, test := range []struct {
		name       string
		streams    bool
		transposed bool
		calls      []string
		want       []byte
	}{
		{"on a stream there is one wait", true, false, []string{"write", "run", "read", "wait"}, []byte{1, 2, 3, 4, 5, 6}},
		{"what is not contiguous is put in order after the wait", true, true, []string{"write", "run", "read", "wait"}, []byte{1, 4, 2, 5, 3, 6}},
		{"a device that only blocks", false, false, []string{"wait", "run", "wait", "wait"}, []byte{1, 2, 3, 4, 5, 6}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var calls []string
			var d device.Device = slow{calls: &calls}
			if !test.streams {
				d = blocking{slow{calls: &calls}}
			}
			m, err := Load(d, mirror(test.transposed), nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			got := make([]byte, 6)
			for _, err := range []error{m.Feed(0, []byte{1, 2, 3, 4, 5, 6}), m.Run(), m.Fetch(0, got), m.Wait()} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, test.want) || !slices.Equal(calls, test.calls) {
				t.Errorf("got %v by %v, want %v by %v", got, calls, test.want, test.calls)
			}
			if err := m.Feed(0, got[:5]); err == nil {
				t.Error("no error for 5 bytes of 6")
			}
			if err := m.Fetch(0, got[:5]); err == nil {
				t.Error("no error for 5 bytes of 6")
			}
		})
	}
}
