package suite

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

func TestNudge(t *testing.T) {
	values := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, math.MaxFloat32, float32(math.Inf(1)), float32(math.NaN()), math.SmallestNonzeroFloat32}
	from := make([]byte, 4*len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(from[4*i:], math.Float32bits(v))
	}
	moved := map[int]map[int32]bool{}
	to := make([]byte, len(from))
	for seed := range uint64(100) {
		nudge(to, from, rand.New(rand.NewPCG(seed, 0)))
		for i, v := range values {
			if moved[i] == nil {
				moved[i] = map[int32]bool{}
			}
			moved[i][int32(binary.LittleEndian.Uint32(to[4*i:])-math.Float32bits(v))] = true
		}
	}
	for i, v := range values {
		want := 1
		if v == 1 || v == -1 || v == 0.5 {
			want = 3
		}
		if got := moved[i]; len(got) != want || !got[0] || want == 3 && !(got[1] && got[-1]) {
			t.Errorf("%v moves by %v ULP", v, got)
		}
	}
}
