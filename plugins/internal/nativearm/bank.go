package nativearm

import (
	"errors"
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/serve"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// Resolve checks banks against what the model takes or gives, and finds their bytes once for all steps.
func Resolve(memory *serve.Memory, what string, banks []arm.Bank, specs []tensor.Spec) ([][][]byte, error) {
	var problems diag.Problems
	out := make([][][]byte, len(banks))
	for b, bank := range banks {
		var err error
		if out[b], err = ResolveOne(memory, fmt.Sprintf("%s[%d]", what, b), bank, specs, &problems); err != nil {
			return nil, err
		}
	}
	return out, problems.Err()
}

// ResolveOne is Resolve for one bank, whose path is given. What is wrong with it is added to problems.
func ResolveOne(memory *serve.Memory, path string, bank arm.Bank, specs []tensor.Spec, problems *diag.Problems) (out [][]byte, err error) {
	if len(bank) != len(specs) {
		problems.Add("WRONG_BANK", path, "%d tensors, the recording has %d", len(bank), len(specs))
		return nil, nil
	}
	for i, placed := range bank {
		want := specs[i]
		if !same(placed.Spec, want) {
			problems.Add("WRONG_TENSOR", path+"."+placed.Name, "%s%v, the recording has %s %s%v", placed.DType, placed.Sizes, want.Name, want.DType, want.Sizes)
			continue
		}
		data, err := memory.Tensor(placed)
		if err != nil {
			return nil, err
		}
		out = append(out, data)
	}
	return out, nil
}

// Fits reports whether a bank has the tensors of specs.
func Fits(bank arm.Bank, specs []tensor.Spec) bool {
	return slices.EqualFunc(bank, specs, func(placed arm.Placed, want tensor.Spec) bool { return same(placed.Spec, want) })
}

func same(a, b tensor.Spec) bool {
	return a.Name == b.Name && a.DType == b.DType && slices.Equal(a.Sizes, b.Sizes)
}

// Churn takes and frees memory of many sizes, as an unkind program would.
func Churn(d device.Device) (err error) {
	var held []device.Memory
	for size := int64(1 << 10); size <= 64<<20; size *= 3 {
		m, allocErr := d.Alloc(size)
		if allocErr != nil {
			err = allocErr
			break
		}
		held = append(held, m)
		if err = m.Fill(0, m.Bytes(), 0xA5); err != nil {
			break
		}
	}
	for _, m := range held {
		err = errors.Join(err, m.Free())
	}
	return err
}

// CopyOut copies a result to the region that a trace wants it in.
func CopyOut(memory *serve.Memory, region arm.Region, data []byte) error {
	to, err := memory.Bytes(region)
	if err != nil {
		return err
	}
	if len(to) != len(data) {
		return diag.New("REGION", "want.region", "%d bytes for a result of %d", len(to), len(data))
	}
	copy(to, data)
	return nil
}
