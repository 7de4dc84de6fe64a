package arm_test

import (
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/tensor"
)

func TestRoom(t *testing.T) {
	memory := make([]byte, 4*arm.Alignment)
	r := arm.NewRoom(arm.Region{Offset: 4096, Length: int64(len(memory))}, memory)
	if at := r.Hold([]byte("abc")); at != (arm.Region{Offset: 4096, Length: 3}) || string(memory[:3]) != "abc" {
		t.Errorf("%+v, %q", at, memory[:3])
	}
	bank, data := r.Bank([]tensor.Spec{{Name: "x", DType: tensor.Float32, Sizes: []int64{17}}, {Name: "y", DType: tensor.Bool, Sizes: []int64{1}}})
	if bank[0].Region != (arm.Region{Offset: 4096 + arm.Alignment, Length: 68}) || bank[1].Region != (arm.Region{Offset: 4096 + 3*arm.Alignment, Length: 1}) {
		t.Errorf("%+v", bank)
	}
	data[0][67], data[1][0] = 1, 2
	if cap(data[0]) != 68 || memory[arm.Alignment+67] != 1 || memory[3*arm.Alignment] != 2 || bank[1].Name != "y" {
		t.Errorf("%d bytes at %d, %v", len(data[0]), arm.Alignment, memory)
	}
	r.Empty()
	if at, _ := r.Take(r.Bytes()); at.Offset != 4096 {
		t.Errorf("taken back, the first piece lies at %d", at.Offset)
	}
}
