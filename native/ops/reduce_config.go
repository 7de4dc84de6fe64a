package ops

import (
	"math/bits"
	"strconv"

	"samebits/bridge/recording"
)

// processor is what the launch of a reduction depends on: it enters the order of additions.
type processor struct {
	multiprocessors int64
	threads         int64 // resident on one multiprocessor
}

// h200 is what a recording counts as that names no other GPU, as one made on a CPU.
var h200 = processor{multiprocessors: 132, threads: 2048}

// processorOf is the processor on which a recording was made. Every device runs the launches that PyTorch made there and
// so gives the same bits.
func processorOf(r *recording.Recording) processor {
	p := h200
	for _, s := range r.Header.Environment {
		if s.Key != "multiprocessors" {
			continue
		}
		if n, err := strconv.ParseInt(s.Value, 10, 64); err == nil && n > 0 {
			p.multiprocessors = n
		}
	}
	return p
}

const (
	maxBlock          = 512 // threads, before it is divided by the output vector
	warp              = 32
	vectorFrom        = 128 // inputs per output from which loads are vectors
	minValuesPerSplit = 16
	maxValuesPerSplit = 256
)

// reduceConfig is ReduceConfig of PyTorch's Reduce.cuh: how threads share inputs and outputs.
type reduceConfig struct {
	inputs, outputs         int64    // inputs per output, and outputs
	width, height           int64    // of the block
	inMult                  [3]int64 // step of the input index along block x, block y, grid y; 0: not split there
	outMult                 [2]int64 // step of the output index along block x, block y
	stepInput, stepOutput   int64
	ctas                    int64 // blocks that share one output
	vectorInput             bool
	outVector               int64
	inVector, reduced, rest int64 // elements of an input vector; number of reduced and other axes
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// lastPow2 is the largest power of two that is not above n; 1 for 0.
func lastPow2(n int64) int64 {
	if n < 1 {
		return 1
	}
	return 1 << (bits.Len64(uint64(n)) - 1)
}

// configure follows setReduceConfig of PyTorch 2.11. elem is the size of an input element in bytes, vector the number of
// elements that are loaded at once along the inputs, alignment the power of two in bytes that divides the input's address.
func configure(axes []axis, elem, vector, alignment int64, gpu processor) reduceConfig {
	c := reduceConfig{outputs: 1, stepInput: 1, stepOutput: 1, ctas: 1, outVector: 1, inVector: vector}
	numel := int64(1)
	for _, a := range axes {
		numel *= a.size
		if a.out == 0 {
			c.reduced++
		} else {
			c.outputs *= a.size
		}
	}
	c.rest = int64(len(axes)) - c.reduced
	c.inputs = numel / c.outputs

	dim0, dim1, fastest, inner := int64(1), int64(1), int64(1), true
	if len(axes) > 0 {
		inner = c.rest == 0 || axes[0].in < axes[c.reduced].in
		if inner {
			dim0, dim1, fastest = c.inputs, c.outputs, axes[0].in
		} else {
			dim0, dim1, fastest = c.outputs, c.inputs, axes[c.reduced].in
		}
	}
	if fastest == 1 {
		switch {
		case inner && dim0 >= vectorFrom && c.reduced == 1:
			c.vectorInput = true
			dim0 /= c.inVector
		case !inner:
			c.outVector = outputVector(axes, c.reduced, alignment/elem)
			dim0 /= c.outVector
		}
	}
	c.setBlock(dim0, dim1)
	if inner {
		c.inMult[0] = c.splitInput(c.width)
	} else {
		c.outMult[0] = c.splitOutput(c.width)
	}
	if c.valuesPerThread() >= min(c.height*minValuesPerSplit, maxValuesPerSplit) {
		c.inMult[1] = c.splitInput(c.height)
	} else {
		c.outMult[1] = c.splitOutput(c.height)
	}
	c.splitOverBlocks(gpu)
	return c
}

// outputVector is the number of neighbouring outputs that one thread computes: what divides everything.
func outputVector(axes []axis, output, base int64) int64 {
	vector := int64(4)
	halve := func(n int64) {
		for n%vector != 0 {
			vector /= 2
		}
	}
	halve(base)
	halve(axes[output].size)
	for i, a := range axes {
		if int64(i) != output {
			halve(a.in)
		}
	}
	return vector
}

func (c *reduceConfig) setBlock(dim0, dim1 int64) {
	most := maxBlock / c.outVector
	pow2 := func(n int64) int64 {
		if n < most {
			return lastPow2(n)
		}
		return most
	}
	c.width = min(pow2(dim0), warp)
	c.height = min(pow2(dim1), most/c.width)
	c.width = min(pow2(dim0), most/c.height)
}

func (c *reduceConfig) splitInput(by int64) int64 {
	step := c.stepInput
	c.stepInput *= by
	return step
}

func (c *reduceConfig) splitOutput(by int64) int64 {
	step := c.stepOutput
	c.stepOutput *= by
	return step
}

func (c *reduceConfig) valuesPerThread() int64 { return ceilDiv(c.inputs, c.stepInput) }

// gridX is the number of blocks that one share of the inputs needs.
func (c *reduceConfig) gridX() int64 { return ceilDiv(c.outputs/c.outVector, c.stepOutput) }

func (c *reduceConfig) splitOverBlocks(gpu processor) {
	values, grid := c.valuesPerThread(), c.gridX()
	target := gpu.multiprocessors * (gpu.threads / (c.width * c.height))
	if c.inMult[1] == 0 || values < maxValuesPerSplit || grid > target {
		return
	}
	c.ctas = max(min(ceilDiv(target, grid), ceilDiv(values, minValuesPerSplit)), ceilDiv(values, maxValuesPerSplit))
	if c.ctas > 1 {
		c.inMult[2] = c.splitInput(c.ctas)
	}
}

// sharedBytes is the dynamic shared memory of a block whose accumulators have acc bytes.
func (c *reduceConfig) sharedBytes(acc int64) int64 {
	if c.inMult[1] == 0 && (c.inMult[0] == 0 || c.width <= warp) {
		return 0
	}
	return acc * c.width * c.height * c.outVector
}

// stagingBytes is the global memory through which blocks that share an output pass partial sums.
func (c *reduceConfig) stagingBytes(acc int64) int64 {
	if c.inMult[2] == 0 {
		return 0
	}
	bytes := acc * c.outVector * c.gridX() * c.ctas
	if c.inMult[0] == 0 {
		bytes *= c.width
	}
	return bytes
}
