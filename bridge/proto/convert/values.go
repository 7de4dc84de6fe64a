package convert

import (
	"math"
	"slices"

	"samebits/bridge/arm"
	pb "samebits/bridge/proto/samebitsv1"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// each converts a list, keeping none as none.
func each[From, To any](list []From, one func(From) To) []To {
	if list == nil {
		return nil
	}
	out := make([]To, len(list))
	for i, v := range list {
		out[i] = one(v)
	}
	return out
}

// eachOf converts a map, keeping none as none.
func eachOf[From, To any](from map[string]From, key func(string) string, one func(From) To) map[string]To {
	if from == nil {
		return nil
	}
	out := make(map[string]To, len(from))
	for k, v := range from {
		out[key(k)] = one(v)
	}
	return out
}

func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

func unsigned(n int64) uint64 { return uint64(max(n, 0)) }

func index(n int) uint32 {
	if n < 0 || int64(n) > math.MaxUint32 {
		return math.MaxUint32
	}
	return uint32(n)
}

func dtypeFrom(d pb.DType) tensor.DType {
	if t := tensor.DType(d & 0xff); int32(t) == int32(d) && t.Valid() {
		return t
	}
	return tensor.Invalid
}

func regionFrom(r *pb.Region) arm.Region {
	return arm.Region{Offset: signed(r.GetOffset()), Length: signed(r.GetLength())}
}

// Region converts to the wire.
func Region(r arm.Region) *pb.Region {
	return &pb.Region{Offset: unsigned(r.Offset), Length: unsigned(r.Length)}
}

func specFrom(s *pb.TensorSpec) tensor.Spec {
	return tensor.Spec{Name: s.GetName(), DType: dtypeFrom(s.GetDtype()), Sizes: slices.Clone(s.GetSizes())}
}

func spec(s tensor.Spec) *pb.TensorSpec {
	return &pb.TensorSpec{Name: valid(s.Name), Dtype: pb.DType(s.DType), Sizes: s.Sizes}
}

func placedFrom(t *pb.PlacedTensor) arm.Placed {
	return arm.Placed{Spec: specFrom(t.GetSpec()), Region: regionFrom(t.GetRegion())}
}

func placed(t arm.Placed) *pb.PlacedTensor {
	return &pb.PlacedTensor{Spec: spec(t.Spec), Region: Region(t.Region)}
}

func bankFrom(b *pb.Bank) arm.Bank { return each(b.GetTensors(), placedFrom) }

// Bank converts to the wire.
func Bank(b arm.Bank) *pb.Bank { return &pb.Bank{Tensors: each(b, placed)} }

func settingFrom(s *pb.Setting) recording.Setting {
	return recording.Setting{Key: s.GetKey(), Value: s.GetValue()}
}

func setting(s recording.Setting) *pb.Setting {
	return &pb.Setting{Key: valid(s.Key), Value: valid(s.Value)}
}
