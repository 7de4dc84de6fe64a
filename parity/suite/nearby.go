package suite

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/tensor"
	"samebits/parity/gate"
)

// mostNearby is how often the reference runs on inputs one ULP away, at most.
const mostNearby = 8

// judgeRounding compares a native arm's error on the host with the eager reference's. A model that chooses (the queries with the
// highest scores, the largest class) may jump where two are almost equal: then an output has errors of any size, and whether
// the reference has one of them on these probes is chance. So where native seems worse, the reference runs on nearby inputs, too.
func (v *verification) judgeRounding(ctx context.Context, exact, run gate.Run) (gate.Finding, error) {
	finding, err := gate.JudgeRounding(exact, v.eager, run, v.probes, v.nearby...)
	if err != nil || finding.Reason != gate.RoundingWorse || len(v.nearby) == mostNearby {
		return finding, err
	}
	s, err := v.openReference(ctx, arm.ReferenceEager)
	if err != nil {
		return finding, err
	}
	defer s.arm.Stop()
	given := make([][][]byte, len(s.given))
	for bank := range s.given {
		for _, data := range s.given[bank] {
			given[bank] = append(given[bank], slices.Clone(data))
		}
	}
	for finding.Reason == gate.RoundingWorse && len(v.nearby) < mostNearby {
		rng := rand.New(rand.NewPCG(v.cell.Seed, uint64(len(v.nearby))))
		for bank := range given {
			for i, data := range given[bank] {
				if s.specs[i].DType == tensor.Float32 {
					nudge(s.given[bank][i], data, rng)
				}
			}
		}
		near, err := s.all(ctx)
		if err != nil {
			return finding, err
		}
		v.nearby = append(v.nearby, near)
		if finding, err = gate.JudgeRounding(exact, v.eager, run, v.probes, v.nearby...); err != nil {
			return finding, err
		}
	}
	return finding, nil
}

// nudge writes numbers that are as those of from, or one ULP more or less. Zeros stay, and so does what is no number.
func nudge(to, from []byte, rng *rand.Rand) {
	for at := 0; at+4 <= len(from); at += 4 {
		bits := binary.LittleEndian.Uint32(from[at:])
		if magnitude := bits &^ (1 << 31); magnitude > 1 && magnitude < 0x7f7fffff {
			bits += uint32(rng.IntN(3)) - 1
		}
		binary.LittleEndian.PutUint32(to[at:], bits)
	}
}
