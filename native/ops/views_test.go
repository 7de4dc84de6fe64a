package ops

import "testing"

func TestViewsCostNothing(t *testing.T) {
	for name, class := range map[string]Class{"aten::view": View, "aten::split.Tensor": View, "aten::t": View, "aten::empty.memory_format": Create} {
		r, ok := Lookup(name)
		if !ok || r.Class != class || r.Lower != nil {
			t.Errorf("%s: %+v, %v", name, r, ok)
		}
	}
}

func TestClassOf(t *testing.T) {
	for name, want := range map[string]Class{
		"aten::add.Tensor": Compute, "aten::add_.Tensor": InPlace, "aten::relu_": InPlace, "aten::_to_copy": Compute, "aten::copy_": InPlace,
	} {
		if got := classOf(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
