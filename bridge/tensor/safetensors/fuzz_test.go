package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"samebits/bridge/fuzztest"
	"samebits/bridge/tensor/safetensors"
)

// kept are weights of real steps, in a file each.
const kept = "../../python/tests/data/*/weights.safetensors"

// decode checks what holds of any bytes.
func decode(t *testing.T, data []byte) {
	t.Helper()
	var f *safetensors.File
	var err error
	fuzztest.Bounded(t, len(data), 1<<20, 200, func() { f, err = safetensors.Decode(data) })
	if err != nil {
		fuzztest.Refused(t, err)
		return
	}
	total := 0
	for _, x := range f.Tensors {
		if int64(len(x.Data)) != x.Bytes() {
			t.Fatalf("%q has %d bytes for %v", x.Name, len(x.Data), x.Spec)
		}
		if got, ok := f.Get(x.Name); !ok || !bytes.Equal(got.Data, x.Data) {
			t.Errorf("%q is not found", x.Name)
		}
		total += len(x.Data)
	}
	if header := binary.LittleEndian.Uint64(data); uint64(len(data)) != 8+header+uint64(total) {
		t.Errorf("%d bytes of data in a file of %d", total, len(data))
	}
	encoded, err := safetensors.Encode(f.Tensors, f.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	again, err := safetensors.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := safetensors.Encode(again.Tensors, again.Metadata)
	if err != nil || !bytes.Equal(twice, encoded) {
		t.Errorf("it has two encodings (%v)", err)
	}
	for i, x := range f.Tensors {
		if y := again.Tensors[i]; y.Name != x.Name || y.DType != x.DType || !bytes.Equal(y.Data, x.Data) {
			t.Errorf("%v became %v", x.Spec, y.Spec)
		}
	}
}

func FuzzDecode(f *testing.F) {
	seeds := fuzztest.Seeds(f, 4<<10, kept)
	for _, tensors := range [][]safetensors.Tensor{nil, every(), every()[:1]} {
		encoded, err := safetensors.Encode(tensors, map[string]string{"k": "v"})
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, encoded)
	}
	for _, data := range seeds {
		f.Add(data)
		f.Add(data[:len(data)-1])
	}
	for _, c := range hostile {
		if len(c.data) < 1000 {
			f.Add(c.data)
		}
	}
	f.Fuzz(decode)
}

// FuzzHeader gives the header its right length, which changed bytes would mostly not have, and data of any length.
func FuzzHeader(f *testing.F) {
	for _, data := range fuzztest.Seeds(f, 4<<10, kept) {
		n := binary.LittleEndian.Uint64(data)
		f.Add(data[8:8+n], uint16(uint64(len(data))-8-n))
	}
	for _, c := range hostile {
		if len(c.data) > 8 && len(c.data) < 1000 {
			f.Add(c.data[8:], uint16(8))
		}
	}
	f.Fuzz(func(t *testing.T, header []byte, data uint16) { decode(t, file(string(header), int(data))) })
}
