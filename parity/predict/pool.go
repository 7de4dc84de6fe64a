package predict

import (
	"context"
	"math/bits"
	"slices"
	"sync"

	"samebits/bridge/arm"
	"samebits/bridge/tensor"
	"samebits/parity/suite"
)

// pool gives places in the memory of an arm, which can only grow, and takes them back: pictures may have many sizes.
type pool struct {
	arm suite.Arm

	mu   sync.Mutex
	free []place
}

// place is a range of an arm's memory, all of it.
type place struct {
	region arm.Region
	data   []byte
}

// of gives the first n bytes of a place.
func (l place) of(n int64) (arm.Region, []byte) {
	return arm.Region{Offset: l.region.Offset, Length: n}, l.data[:n:n]
}

// take gives a place of at least n bytes: the smallest that is free, or a new one.
func (p *pool) take(ctx context.Context, n int64) (place, error) {
	p.mu.Lock()
	best := -1
	for i, l := range p.free {
		if l.region.Length >= n && (best < 0 || l.region.Length < p.free[best].region.Length) {
			best = i
		}
	}
	if best >= 0 {
		l := p.free[best]
		p.free = slices.Delete(p.free, best, best+1)
		p.mu.Unlock()
		return l, nil
	}
	p.mu.Unlock()
	region, data, err := p.arm.Alloc(ctx, rounded(n))
	return place{region, data}, err
}

// rounded makes places of few sizes, at most a quarter too large.
func rounded(n int64) int64 {
	step := max(int64(1)<<max(bits.Len64(uint64(n))-3, 0), arm.Alignment)
	return (n + step - 1) / step * step
}

// put takes places back.
func (p *pool) put(places ...place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, places...)
}

// bank is a set of tensors in an arm's memory.
type bank struct {
	arm.Bank
	data   [][]byte
	places []place
}

func (p *pool) bank(ctx context.Context, specs []tensor.Spec) (b bank, err error) {
	for _, spec := range specs {
		l, err := p.take(ctx, spec.Bytes())
		if err != nil {
			p.put(b.places...)
			return bank{}, err
		}
		region, data := l.of(spec.Bytes())
		b.Bank, b.data, b.places = append(b.Bank, arm.Placed{Spec: spec, Region: region}), append(b.data, data), append(b.places, l)
	}
	return b, nil
}

// fill copies what lies in another bank of the same tensors.
func (b bank) fill(from bank) {
	for i, data := range from.data {
		copy(b.data[i], data)
	}
}
