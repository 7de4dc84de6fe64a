package train

import (
	"bytes"
	"encoding/binary"
	"testing"

	"samebits/bridge/fuzztest"
	"samebits/bridge/tensor/safetensors"
)

// restore checks what holds of any bytes that claim to be a checkpoint: they are refused and nothing changes, or the state is theirs.
func restore(t *testing.T, tr *Trainer, data []byte) {
	t.Helper()
	file, err := safetensors.Decode(data)
	if err != nil {
		fuzztest.Refused(t, err)
		return
	}
	before := checkpoint(t, tr)
	if err := tr.Restore(file); err != nil {
		fuzztest.Refused(t, err)
		if !bytes.Equal(checkpoint(t, tr), before) {
			t.Error("it was refused, and the state is another")
		}
		return
	}
	after := checkpoint(t, tr)
	again, err := safetensors.Decode(after)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range tr.specs {
		want, has := file.Get(spec.Name)
		if got, ok := again.Get(spec.Name); !ok || has && !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s is not what was restored", spec.Name)
		}
	}
	if err := tr.Restore(again); err != nil || !bytes.Equal(checkpoint(t, tr), after) {
		t.Errorf("restored again it is another (%v)", err)
	}
}

func checkpoint(t testing.TB, tr *Trainer) []byte {
	t.Helper()
	data, err := tr.Checkpoint()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzRestore(f *testing.F) {
	tr, _ := open(f, "cuda")
	f.Add(checkpoint(f, tr))
	f.Fuzz(func(t *testing.T, data []byte) { restore(t, tr, data) })
}

// FuzzRestoreHeader gives the header its right length, which changed bytes would mostly not have, and as much data as there was.
func FuzzRestoreHeader(f *testing.F) {
	tr, _ := open(f, "cuda")
	data := checkpoint(f, tr)
	n := binary.LittleEndian.Uint64(data)
	header, body := data[8:8+n], data[8+n:]
	f.Add(header)
	f.Add(bytes.Replace(header, []byte("000000000000"), []byte("000000000007"), 1))
	f.Add(bytes.Replace(header, []byte("momentum.w"), []byte("momentum.x"), 1))
	f.Fuzz(func(t *testing.T, header []byte) {
		restore(t, tr, bytes.Join([][]byte{binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header, body}, nil))
	})
}
