package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"samebits/bridge/diag"
	"samebits/native/device"
)

// chosenLinear is what cuBLASLt's heuristic answered for a signature.
type chosenLinear struct {
	c      C.sb_linear // without descriptors
	choice string
}

func (w *preparation) batchNorm(i int, b *device.BatchNorm) error {
	at, err := w.addresses(b.X.Pointer, b.Y.Pointer, b.Scale.Pointer, b.Bias.Pointer, b.Mean.Pointer, b.Variance.Pointer)
	if err != nil {
		return err
	}
	key, err := describeBatchNorm(b)
	if err != nil {
		return err
	}
	var e C.sb_error
	q := w.p.queue(i)
	if C.sb_queue_cudnn(q, &e) != 0 {
		return failure(&e)
	}
	c := key.toC()
	if C.sb_batch_norm_open(q, &c, &e) != 0 {
		return failure(&e)
	}
	if w.firstOn(i, key) {
		if err := w.tryBatchNorm(q, c, b, at); err != nil {
			C.sb_batch_norm_close(q, &c)
			return err
		}
	}
	setBatchNorm(&c, at[0], at[1], at[2], at[3], at[4], at[5])
	C.sb_list_batch_norm(w.p.list, C.int(i), &c)
	w.p.choices[i] = "cudnnBatchNormalizationForwardInference"
	return nil
}

// tryBatchNorm runs on whatever there is; the four parameters may share it.
func (w *preparation) tryBatchNorm(q *C.sb_queue, c C.sb_batch_norm, b *device.BatchNorm, at []uint64) error {
	places, err := w.onTrial(areaOf(b.X, at[0]), areaOf(b.Y, at[1]), areaOf(b.Scale, at[2]))
	if err != nil {
		return err
	}
	parameter := uint64(places[2])
	setBatchNorm(&c, uint64(places[0]), uint64(places[1]), parameter, parameter, parameter, parameter)
	var e C.sb_error
	if C.sb_batch_norm_run(q, &c, &e) != 0 || C.sb_queue_wait(q, &e) != 0 {
		return failure(&e)
	}
	return nil
}

func setBatchNorm(c *C.sb_batch_norm, x, y, scale, bias, mean, variance uint64) {
	c.x, c.y = C.sb_pointer(x), C.sb_pointer(y)
	c.scale, c.bias = C.sb_pointer(scale), C.sb_pointer(bias)
	c.mean, c.variance = C.sb_pointer(mean), C.sb_pointer(variance)
}

func (w *preparation) linear(i int, l *device.Linear) error {
	bias := l.Bias
	if bias.Sizes == nil { // what the product is added to is d, and PyTorch tells a null pointer's alignment
		bias = l.D
	}
	at, err := w.addresses(l.A.Pointer, l.B.Pointer, bias.Pointer, l.D.Pointer)
	if err != nil {
		return err
	}
	if l.Bias.Sizes == nil {
		at[2] = 0
	}
	key, err := describeLinear(l, at[0], at[1], at[2], at[3], w.options)
	if err != nil {
		return err
	}
	var e C.sb_error
	q := w.p.queue(i)
	if C.sb_queue_cublas(q, &e) != 0 {
		return failure(&e)
	}
	if w.firstOn(i, key) {
		chosen, err := w.tryLinear(i, q, key, areaOf(l.B, at[1]), areaOf(l.A, at[0]), areaOf(bias, at[2]), areaOf(l.D, at[3]))
		if err != nil {
			return err
		}
		w.linears[key] = chosen
	}
	chosen := w.linears[key]
	w.need(i, linearWorkspace)
	c := key.toC()
	c.a, c.b, c.bias, c.d = C.sb_pointer(at[1]), C.sb_pointer(at[0]), C.sb_pointer(at[2]), C.sb_pointer(at[3])
	w.p.choices[i] = chosen.choice
	w.products = append(w.products, pendingLinear{command: i, c: c, choice: chosen})
	return nil
}

// tryLinear asks the heuristic, unless another lane did, and runs its answer once.
func (w *preparation) tryLinear(command int, q *C.sb_queue, key linear, areas ...area) (*chosenLinear, error) {
	places, err := w.onTrial(areas...)
	if err != nil {
		return nil, err
	}
	workspace, err := w.trialWorkspace(command, linearWorkspace)
	if err != nil {
		return nil, err
	}
	c := key.toC()
	c.a, c.b, c.bias, c.d, c.workspace = places[0], places[1], places[2], places[3], workspace
	var (
		e   C.sb_error
		tag [C.SB_TAG]C.char
	)
	var like *C.sb_linear
	if chosen := w.linears[key]; chosen != nil {
		answer := chosen.c // C may not see the Go string beside it
		like = &answer
	}
	if C.sb_linear_open(q, &c, like, &tag[0], &e) != 0 {
		return nil, failure(&e)
	}
	defer C.sb_linear_close(q, &c)
	if C.sb_linear_run(q, &c, &e) != 0 || C.sb_queue_wait(q, &e) != 0 {
		return nil, failure(&e)
	}
	return &chosenLinear{c: C.sb_linear{algo: c.algo}, choice: C.GoString(&tag[0])}, nil
}

func (w *preparation) product(p pendingLinear, workspace C.sb_pointer) error {
	var (
		e   C.sb_error
		tag [C.SB_TAG]C.char
	)
	p.c.workspace = workspace
	if C.sb_linear_open(w.p.q, &p.c, &p.choice.c, &tag[0], &e) != 0 {
		return diag.New("BAD_COMMAND", commandPath(p.command), "linear: %v", failure(&e))
	}
	C.sb_list_linear(w.p.list, C.int(p.command), &p.c)
	return nil
}
