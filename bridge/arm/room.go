package arm

import "samebits/bridge/tensor"

// Room is a region of the shared memory that a host gives out piece by piece, and again when what lay there is done with.
type Room struct {
	at     Region
	memory []byte // the host's view of it
	used   int64
}

// NewRoom makes a room of what the host allocated.
func NewRoom(at Region, memory []byte) Room { return Room{at: at, memory: memory} }

// Bytes is the size of the whole.
func (r *Room) Bytes() int64 { return int64(len(r.memory)) }

// Empty takes all of it back.
func (r *Room) Empty() { r.used = 0 }

// Take gives the next n bytes. There must be as many.
func (r *Room) Take(n int64) (Region, []byte) {
	at := r.used
	r.used += (n + Alignment - 1) / Alignment * Alignment
	return Region{Offset: r.at.Offset + at, Length: n}, r.memory[at : at+n : at+n]
}

// Hold takes as many bytes as data has, and copies it there.
func (r *Room) Hold(data []byte) Region {
	at, place := r.Take(int64(len(data)))
	copy(place, data)
	return at
}

// Bank takes a place for each tensor.
func (r *Room) Bank(specs []tensor.Spec) (Bank, [][]byte) {
	bank, data := make(Bank, len(specs)), make([][]byte, len(specs))
	for i, spec := range specs {
		bank[i].Spec = spec
		bank[i].Region, data[i] = r.Take(spec.Bytes())
	}
	return bank, data
}
