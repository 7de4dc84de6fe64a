package ops

import (
	"encoding/binary"
	"runtime"
	"sync"

	"samebits/bridge/tensor"
	"samebits/parity/signature"
	"samebits/parity/values"
)

// chunk is how many bytes one goroutine fills or compares at a time.
const chunk = 4 << 20

// parallel calls f for each number below n, on all processors.
func parallel(n int, f func(i int)) {
	var wait sync.WaitGroup
	next := make(chan int)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
}

// fill writes the contents of a kind over the batch's inputs. Each operation has the same ones in every batch.
func (b *batch) fill(kind values.Kind, seed uint64, data [][]byte) {
	type piece struct {
		input    int
		from, to int64
	}
	var pieces []piece
	for i := range data {
		for at := int64(0); at < int64(len(data[i])); at += chunk {
			pieces = append(pieces, piece{i, at, min(at+chunk, int64(len(data[i])))})
		}
	}
	parallel(len(pieces), func(n int) {
		p := pieces[n]
		in := &b.inputs[p.input]
		values.Fill(kind, in.spec.DType, in.domain, b.seedOf(p.input, kind, seed), p.from/in.spec.DType.Size(), data[p.input][p.from:p.to])
	})
	for i := range b.inputs {
		for _, value := range b.inputs[i].placed {
			place(b.ops[b.inputs[i].op], value, b.inputs[i].domain, data[i])
		}
	}
}

// seedOf makes the seed of an input from the run's, from the operation, and from the input's number in it.
func (b *batch) seedOf(i int, kind values.Kind, seed uint64) uint64 {
	in := &b.inputs[i]
	name := in.spec.Name // o7.s0: the number of the operation is the batch's affair
	for at := range len(name) {
		if name[at] == '.' {
			name = name[at:]
			break
		}
	}
	return values.Seed(seed, string(kind)+b.ops[in.op].ID+name)
}

// place writes the elements whose value depends on where they stand.
func place(o *signature.Operation, value int, domain values.Domain, data []byte) {
	v := &o.Alone.Values[value]
	walk(v, func(at []int64, physical int64) {
		x := uint64(domain.Place(at))
		to := data[(v.Offset+physical)*v.DType.Size():]
		switch v.DType {
		case tensor.Int64:
			binary.LittleEndian.PutUint64(to, x)
		case tensor.Int32:
			binary.LittleEndian.PutUint32(to, uint32(x))
		}
	})
}
