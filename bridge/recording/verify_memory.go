package recording

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

func (v *verifier) storages() {
	v.written = make([]bool, len(v.r.Storages))
	seen := map[string]int{}
	total := int64(0)
	for i := range v.r.Storages {
		s := &v.r.Storages[i]
		path := fmt.Sprintf("storages[%d]", i)
		switch {
		case s.Bytes < 0:
			v.add("BAD_SIZE", path+".bytes", "%d bytes", s.Bytes)
		case s.Bytes > MaxTotalBytes-total:
			v.add("TOO_LARGE", path+".bytes", "with its %d bytes the storages have more than %d bytes", s.Bytes, int64(MaxTotalBytes))
			total = 0 // so that later ones are judged by themselves
		default:
			total += s.Bytes
		}
		if !s.DType.Valid() {
			v.add("UNKNOWN_DTYPE", path+".dtype", "the storage has no dtype that we know")
		} else if s.Bytes%s.DType.Size() != 0 {
			v.add("BAD_SIZE", path+".bytes", "%d bytes are no whole number of %s", s.Bytes, s.DType)
		}
		switch s.Role {
		case Input, Parameter, Buffer, Constant:
			v.written[i] = true
			v.name(path+".name", s.Name, i, seen)
		case Gradient, Output, Scratch:
			if s.Name != "" {
				v.name(path+".name", s.Name, i, seen)
			}
		default:
			v.add("BAD_ROLE", path+".role", "the storage has no role that we know")
		}
	}
}

func (v *verifier) values() {
	for i := range v.r.Values {
		x := &v.r.Values[i]
		path := fmt.Sprintf("values[%d]", i)
		ok := true
		if x.Storage < 0 || x.Storage >= len(v.r.Storages) {
			v.add("BAD_INDEX", path+".storage", "there is no storage %d, only %d storages", x.Storage, len(v.r.Storages))
			ok = false
		}
		if !x.DType.Valid() {
			v.add("UNKNOWN_DTYPE", path+".dtype", "the value has no dtype that we know")
			ok = false
		}
		if len(x.Sizes) != len(x.Strides) || len(x.Sizes) > MaxRank {
			v.add("BAD_SHAPE", path, "%d sizes and %d strides", len(x.Sizes), len(x.Strides))
			ok = false
		}
		if negative(x.Sizes) || negative(x.Strides) || x.Offset < 0 {
			v.add("BAD_SHAPE", path, "sizes %v, strides %v and offset %d must not be negative", clip(x.Sizes), clip(x.Strides), x.Offset)
			ok = false
		}
		if a := x.Alignment; bits.OnesCount32(a) != 1 || a > MaxAlignment {
			v.add("BAD_ALIGNMENT", path+".alignment", "%d is no power of two up to %d", a, MaxAlignment)
			ok = false
		}
		if ok {
			v.extent(path, x)
		}
	}
}

// extent checks that all elements of x lie within its storage. x is sound otherwise.
func (v *verifier) extent(path string, x *Value) {
	if slices.Contains(x.Sizes, 0) {
		return
	}
	count, last := int64(1), x.Offset
	fits := true
	for d, n := range x.Sizes {
		step, ok1 := multiply(n-1, x.Strides[d])
		sum, ok2 := add(last, step)
		product, ok3 := multiply(count, n)
		if !ok1 || !ok2 || !ok3 {
			fits = false
			break
		}
		last, count = sum, product
	}
	bytes, ok := multiply(last, x.DType.Size())
	end, ok2 := add(bytes, x.DType.Size())
	if total, ok := multiply(count, x.DType.Size()); !ok || total > MaxTotalBytes {
		fits = false // an expanded value may have more elements than its storage, but not more than anyone can hold
	}
	if storage := v.r.Storages[x.Storage].Bytes; !fits || !ok || !ok2 || end > storage {
		v.add("OUT_OF_BOUNDS", path, "%s%v with strides %v and offset %d does not lie in the %d bytes of storages[%d]",
			x.DType, x.Sizes, x.Strides, x.Offset, storage, x.Storage)
		return
	}
	v.alignment(path, x)
}

// residue says that an address is r modulo m. m is 0 if nothing is known.
type residue struct{ r, m int64 }

// alignment checks that the values of one storage can have the alignments they claim: each says something about the
// storage's address, and they must not contradict each other.
func (v *verifier) alignment(path string, x *Value) {
	a := int64(x.Alignment)
	if a < x.DType.Size() {
		v.add("BAD_ALIGNMENT", path+".alignment", "a %s cannot lie at a multiple of %d bytes only", x.DType, a)
		return
	}
	// The value's address is a multiple of its alignment; of a larger one, too, where the reference could not promise it.
	now := residue{m: a, r: -x.Offset * x.DType.Size()}
	known := &v.aligned[x.Storage]
	if m := min(now.m, known.m); m > 0 && (now.r-known.r)%m != 0 {
		v.add("BAD_ALIGNMENT", path+".alignment", "%d contradicts the alignment of another value on storages[%d]", a, x.Storage)
	}
	if now.m > known.m {
		*known = now
	}
}

func negative(list []int64) bool {
	return slices.ContainsFunc(list, func(n int64) bool { return n < 0 })
}

// clip keeps messages short whatever a hostile file says.
func clip(list []int64) []int64 { return list[:min(len(list), MaxRank)] }

// multiply and add are for numbers that are not negative; ok is false on overflow.
func multiply(a, b int64) (int64, bool) {
	high, low := bits.Mul64(uint64(a), uint64(b))
	return int64(low), high == 0 && low <= math.MaxInt64
}

func add(a, b int64) (int64, bool) {
	return a + b, a <= math.MaxInt64-b
}

var roles = [...]string{RoleInvalid: "invalid", Input: "input", Parameter: "parameter", Buffer: "buffer", Constant: "constant",
	Gradient: "gradient", Output: "output", Scratch: "scratch"}

func (r Role) String() string {
	if int(r) >= len(roles) {
		return fmt.Sprintf("role(%d)", uint8(r))
	}
	return roles[r]
}

// Weight reports whether storages of this role travel in the weights file.
func (r Role) Weight() bool { return r == Parameter || r == Buffer || r == Constant }
