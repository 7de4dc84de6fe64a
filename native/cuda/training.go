package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// norm is all but the addresses of a batch norm in training, or of its gradient.
type norm struct {
	backward          bool
	mode              C.uint
	x                 described // without alignment: cuDNN is not told
	momentum, epsilon float64
	reserve           int64
}

// describeTraining checks a batch norm in training and describes it as PyTorch would.
func describeTraining(b *device.BatchNormTraining) (norm, error) {
	x, err := describeNorm(b.X, []named{{"y", b.Y}}, []named{{"scale", b.Scale}, {"bias", b.Bias},
		{"running mean", b.RunningMean}, {"running variance", b.RunningVariance},
		{"save mean", b.SaveMean}, {"save invstd", b.SaveInvstd}})
	n := norm{mode: normMode(b.X), x: x, momentum: b.Momentum, epsilon: b.Epsilon, reserve: tensor.Numel(b.Reserve.Sizes)}
	if err == nil {
		err = checkReserve(b.Reserve)
	}
	return n, err
}

func describeBackward(b *device.BatchNormBackward) (norm, error) {
	x, err := describeNorm(b.X, []named{{"dy", b.DY}, {"dx", b.DX}}, []named{{"scale", b.Scale}, {"dscale", b.DScale},
		{"dbias", b.DBias}, {"save mean", b.SaveMean}, {"save invstd", b.SaveInvstd}})
	n := norm{backward: true, mode: normMode(b.X), x: x, epsilon: b.Epsilon, reserve: tensor.Numel(b.Reserve.Sizes)}
	if err == nil {
		err = checkReserve(b.Reserve)
	}
	return n, err
}

// normMode is PyTorch's: only training in channels last uses the persistent kernels.
func normMode(x device.Tensor) C.uint {
	if isChannelsLast(x.Sizes, x.Strides) {
		return C.SB_BATCHNORM_SPATIAL_PERSISTENT
	}
	return C.SB_BATCHNORM_SPATIAL
}

func checkReserve(t device.Tensor) error {
	if t.DType != tensor.Uint8 || !tensor.IsContiguous(t.Sizes, t.Strides) {
		return fmt.Errorf("reserve is %s %v; contiguous uint8 is wanted", t.DType, t.Sizes)
	}
	return nil
}

func (n norm) toC() C.sb_norm {
	c := C.sb_norm{backward: toInt(n.backward), mode: n.mode, _type: cudnnTypes[n.x.dtype], dims: C.int(n.x.dims),
		momentum: C.double(n.momentum), epsilon: C.double(n.epsilon), reserve_bytes: C.size_t(n.reserve)}
	for i := range n.x.dims {
		c.sizes[i], c.strides[i] = C.int(n.x.sizes[i]), C.int(n.x.strides[i])
	}
	return c
}

// part is a tensor of a batch norm and where its address goes.
type part struct {
	device.Tensor
	to *C.sb_pointer
}

func (w *preparation) normTraining(i int, b *device.BatchNormTraining) error {
	n, err := describeTraining(b)
	if err != nil {
		return err
	}
	w.p.choices[i] = "cudnnBatchNormalizationForwardTrainingEx"
	return w.norm(i, n, func(c *C.sb_norm) []part {
		return []part{{b.X, &c.x}, {b.Y, &c.y}, {b.Scale, &c.scale}, {b.Bias, &c.bias}, {b.RunningMean, &c.running_mean},
			{b.RunningVariance, &c.running_variance}, {b.SaveMean, &c.save_mean}, {b.SaveInvstd, &c.save_invstd},
			{b.Reserve, &c.reserve}}
	})
}

func (w *preparation) normBackward(i int, b *device.BatchNormBackward) error {
	n, err := describeBackward(b)
	if err != nil {
		return err
	}
	w.p.choices[i] = "cudnnBatchNormalizationBackwardEx"
	return w.norm(i, n, func(c *C.sb_norm) []part {
		return []part{{b.X, &c.x}, {b.DY, &c.dy}, {b.DX, &c.dx}, {b.Scale, &c.scale}, {b.DScale, &c.dscale},
			{b.DBias, &c.dbias}, {b.SaveMean, &c.save_mean}, {b.SaveInvstd, &c.save_invstd}, {b.Reserve, &c.reserve}}
	})
}

// norm tries a batch norm on scratch memory and keeps it until the workspace has an address.
func (w *preparation) norm(i int, n norm, parts func(*C.sb_norm) []part) error {
	var e C.sb_error
	q := w.p.queue(i)
	if C.sb_queue_cudnn(q, &e) != 0 {
		return failure(&e)
	}
	c := n.toC()
	if C.sb_norm_open(q, &c, &e) != 0 {
		return failure(&e)
	}
	err := w.prepareNorm(i, q, n, &c, parts)
	if err != nil {
		C.sb_norm_close(q, &c)
		return err
	}
	w.norms = append(w.norms, pendingNorm{command: i, c: c})
	w.need(i, int64(c.workspace_bytes))
	if n.mode == C.SB_BATCHNORM_SPATIAL_PERSISTENT {
		w.persistent.add(i)
	}
	return nil
}

func (w *preparation) prepareNorm(i int, q *C.sb_queue, n norm, c *C.sb_norm, parts func(*C.sb_norm) []part) error {
	if int64(c.reserve_needed) > n.reserve {
		return fmt.Errorf("cuDNN wants a reserve of %d bytes, the recording has %d", uint64(c.reserve_needed), n.reserve)
	}
	var areas []area
	var to []*C.sb_pointer
	for _, p := range parts(c) {
		if tensor.Numel(p.Sizes) == 0 {
			continue // a reserve of no bytes has no address, in PyTorch either
		}
		address, err := w.address(p.Pointer)
		if err != nil {
			return err
		}
		areas, to = append(areas, areaOf(p.Tensor, address)), append(to, p.to)
	}
	if w.firstOn(i, n) {
		places, err := w.place(areas...)
		if err != nil {
			return err
		}
		if c.workspace, err = w.workspace.atLeast(int64(c.workspace_bytes)); err != nil {
			return err
		}
		for j, place := range places {
			*to[j] = place
		}
		var e C.sb_error
		if C.sb_norm_run(q, c, &e) != 0 || C.sb_queue_wait(q, &e) != 0 {
			return failure(&e)
		}
	}
	for j, a := range areas {
		*to[j] = C.sb_pointer(a.address)
	}
	return nil
}

// persistent keeps the persistent batch norms of different lanes apart. Their blocks wait for each other, and two such
// kernels that have half of the GPU each would wait for ever.
type persistent struct {
	last   int
	before map[int]int // the command that one must wait for
}

func (p *persistent) add(i int) {
	if p.before == nil {
		p.before = map[int]int{}
	} else {
		p.before[i] = p.last
	}
	p.last = i
}
