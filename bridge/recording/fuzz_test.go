package recording_test

import (
	"bytes"
	"runtime"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/recording/recordingtest"
)

func FuzzDecode(f *testing.F) {
	for _, r := range []*recording.Recording{recordingtest.ConvBNReLU(), everyKind()} {
		data := recordingtest.Encoded(f, r)
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := recording.Decode(data)
		runtime.ReadMemStats(&after)
		if used, most := after.TotalAlloc-before.TotalAlloc, uint64(1<<20+400*len(data)); used > most {
			t.Errorf("%d bytes of input took %d bytes of memory", len(data), used)
		}
		if err != nil {
			if _, ok := diag.Of(err); !ok {
				t.Errorf("error without problems: %v", err)
			}
			return
		}
		useEverything(r)
		again, err := recording.Decode(recordingtest.Encoded(t, r))
		if err != nil {
			t.Fatalf("encoded again it is refused: %v", err)
		}
		if ds := recording.Equal(r, again); len(ds) > 0 {
			t.Errorf("encoded again it differs: %v", ds)
		}
	})
}

// FuzzVerify changes numbers of a sound recording, which protobuf's own checks would mostly hide from Verify.
func FuzzVerify(f *testing.F) {
	f.Add(0, 0, int64(1), int64(-1), uint32(3), uint64(1<<63))
	f.Add(3, 5, int64(1<<62), int64(4), uint32(512), uint64(16))
	f.Fuzz(func(t *testing.T, value, operation int, size, stride int64, alignment uint32, bytes uint64) {
		r := recordingtest.ConvBNReLU()
		v := &r.Values[uint(value)%uint(len(r.Values))]
		if len(v.Sizes) > 0 {
			v.Sizes[0], v.Strides[len(v.Strides)-1] = size, stride
		}
		v.Offset, v.Alignment = size^stride, alignment
		r.Storages[uint(operation)%uint(len(r.Storages))].Bytes = int64(bytes)
		o := &r.Operations[uint(operation)%uint(len(r.Operations))]
		o.Arguments[0].Value, o.Results[0].Value = value, operation
		if ps := recording.Verify(r); len(ps) > 0 {
			_ = ps.Error()
			return
		}
		useEverything(r)
	})
}

// useEverything touches each element that a verified recording says it has.
func useEverything(r *recording.Recording) {
	for i := range r.Values {
		v := &r.Values[i]
		if v.Numel() == 0 {
			continue
		}
		last := v.Offset
		for d := range v.Sizes {
			last += (v.Sizes[d] - 1) * v.Strides[d]
		}
		if end := (last + 1) * v.DType.Size(); last < 0 || end > r.Storages[v.Storage].Bytes {
			panic("a verified value lies outside of its storage")
		}
	}
	for i := range r.Operations {
		_ = r.Signature(&r.Operations[i])
	}
}

func TestFlippedBitsNeverPanic(t *testing.T) {
	whole := recordingtest.Encoded(t, recordingtest.ConvBNReLU())
	for i := range whole {
		for bit := range 8 {
			data := bytes.Clone(whole)
			data[i] ^= 1 << bit
			if r, err := recording.Decode(data); err == nil {
				useEverything(r)
			}
		}
	}
}
