// Package device says what a device of the native engine does: it turns a launch list into a Program whose addresses
// never change, runs it, captures it and replays it. Package cuda and package host implement it.
package device

import "samebits/bridge/tensor"

// Pointer is a place in the memory that the plan laid out.
type Pointer struct {
	Storage int   // index of a plan's storage
	Offset  int64 // bytes
}

// Tensor is a Pointer with the geometry that library calls need. Sizes and strides are in elements.
type Tensor struct {
	Pointer
	DType   tensor.DType
	Sizes   []int64
	Strides []int64
}

// A Command is one entry of a launch list. Its exact types are those of this package.
type Command interface{ command() }

// Kernel launches an entry of one of our kernel files. Arguments are as cuLaunchKernel takes them.
type Kernel struct {
	File        string // name in package kernels without .cu: silu
	Entry       string // extern "C" name: silu_bf16
	Grid, Block [3]uint32
	Shared      uint32 // dynamic shared memory in bytes
	Args        []any  // Pointer, int32, uint32, int64, uint64, float32, float64
}

// Direction says which of its tensors a convolution computes.
type Direction uint8

const (
	Forward        Direction = iota // Y from X and W
	BackwardData                    // X, the input's gradient, from W and Y, the output's gradient
	BackwardFilter                  // W, the weight's gradient, from X and Y, the output's gradient
)

// Convolution is one cuDNN convolution without bias.
type Convolution struct {
	Direction                 Direction
	X, W, Y                   Tensor
	Padding, Stride, Dilation []int64
	Groups                    int64
}

// BatchNorm is cuDNN's batch norm inference on NCHW tensors: y = scale*(x-mean)/sqrt(variance+eps)+bias.
type BatchNorm struct {
	X, Y                        Tensor
	Scale, Bias, Mean, Variance Tensor // float32, one element a channel
	Epsilon                     float64
}

// BatchNormTraining is cuDNN's batch norm of a training step on NCHW or channels-last tensors. It updates the running
// statistics in place and leaves what the backward pass needs in SaveMean, SaveInvstd (1/sqrt(variance+eps)) and Reserve.
type BatchNormTraining struct {
	X, Y                         Tensor
	Scale, Bias                  Tensor // float32, one element a channel
	RunningMean, RunningVariance Tensor
	SaveMean, SaveInvstd         Tensor
	Reserve                      Tensor  // uint8, as many bytes as cuDNN asks for; may be empty
	Momentum, Epsilon            float64 // running = (1-momentum)*running + momentum*new
}

// BatchNormBackward is the backward pass of BatchNormTraining: DX, DScale and DBias from DY.
type BatchNormBackward struct {
	X, DY, DX            Tensor
	Scale, DScale, DBias Tensor
	SaveMean, SaveInvstd Tensor
	Reserve              Tensor
	Epsilon              float64
}

// Factors scale a product: D = Alpha*A*B + Beta*D. Where Beta is 0 what D held before does not count, not even a NaN.
type Factors struct{ Alpha, Beta float64 }

// Matmul is cuBLAS's d = a*b, as PyTorch's mm, addmm and bmm call it.
type Matmul struct {
	A, B, D Tensor // [m,k], [k,n], [m,n]; or each with a dimension of batches before it
	Factors *Factors
}

// MatVec is cuBLAS's d = a*x of a matrix and a vector, as PyTorch's mv calls it.
type MatVec struct {
	A, X, D Tensor // [m,k], [k], [m]
}

// Linear is cuBLASLt's d = a*b + bias with the bias in the epilogue, as PyTorch's addmm calls it for row-major d. A bias
// without sizes is none; then the product is added to what D held, whatever Factors say of Beta.
type Linear struct {
	A, B, Bias, D Tensor // [m,k], [k,n], [n], [m,n]
	Factors       *Factors
}

// Copy copies bytes between places that do not overlap.
type Copy struct {
	To, From Pointer
	Bytes    int64
}

// Fill sets bytes.
type Fill struct {
	To    Pointer
	Bytes int64
	Byte  byte
}

func (*Kernel) command()      {}
func (*Convolution) command() {}
func (*BatchNorm) command()   {}
func (*Linear) command()      {}

func (*BatchNormTraining) command() {}
func (*BatchNormBackward) command() {}
func (*Matmul) command()            {}
func (*MatVec) command()            {}

func (*Copy) command() {}
func (*Fill) command() {}

// Memory is a block that the device owns. Addresses are multiples of 512.
type Memory interface {
	Bytes() int64
	Address() uintptr
	Write(offset int64, data []byte) error // host to device, done when it returns
	Read(offset int64, data []byte) error  // device to host, done when it returns
	Fill(offset, bytes int64, b byte) error
	Free() error
}

// Resolve gives the address of a Pointer.
type Resolve func(Pointer) uintptr

// Options are switches that the device obeys while it prepares a program.
type Options struct {
	Deterministic bool // drop cuDNN engines that may add in any order
	AllowTF32     bool
	Schedule      *Schedule // nil: one command after the other
	// Place, if there is one, says where workspaces lie and what runs side by side, instead of Schedule. It is called once,
	// with the bytes of workspace that each command will want. Before the call addresses need not be those of later, only
	// as many bytes behind a multiple of 512; after it they stay. See Placement.
	Place func(workspaces []int64) (Placement, error)
}

// Placement is what Options.Place answers. A device that then needs a larger workspace than it asked for, or is given none,
// takes memory of its own. While it prepares a program it may run commands and so write their results.
type Placement struct {
	Workspaces []Pointer // by command; counts where workspace was asked for
	Schedule   *Schedule
}

// Schedule lets commands that do not depend on each other run side by side, on up to Lanes lanes. Commands of one lane
// run in the order of the list. A program with a schedule runs its whole list or nothing.
type Schedule struct {
	Lanes int
	Lane  []uint8   // by command
	Waits [][]int32 // by command: commands of other lanes that must be done before it
}

// Program is a launch list made ready: kernels compiled, plans built, workspace allocated.
// A Program is used by one goroutine at a time.
type Program interface {
	// Run walks commands from..to-1 of the list in one crossing into C, on the program's stream, without waiting.
	Run(from, to int) error
	// Capture records the whole list into a graph. It does not run it. Nodes of the graph are counted.
	Capture() (nodes int, err error)
	// Nodes counts the captured graph's nodes by kind, with the names of bridge/arm; nil: there is no graph.
	Nodes() map[string]int64
	// Replay launches the captured graph, without waiting.
	Replay() error
	// Release drops the captured graph, if any.
	Release() error
	// Wait blocks until everything launched is done and gives the device's error, if any.
	Wait() error
	// WorkspaceBytes is the memory that library calls of this program need beside the arena.
	WorkspaceBytes() int64
	// Choices names, for each command, what the libraries chose (engine, kernel), for reports. May be empty.
	Choices() []string
	Close() error
}

// Device runs programs. Its methods may be called by any goroutine.
type Device interface {
	Name() string // cuda:0, host
	// Environment is what a certificate records: gpu, driver, library versions and paths, compiler. Sorted by key.
	Environment() []Setting
	Alloc(bytes int64) (Memory, error)
	Prepare(list []Command, resolve Resolve, options Options) (Program, error)
	// InUse and Peak are bytes of device memory that this process holds and held.
	InUse() int64
	// Waits counts how often this process waited for the device: Program.Wait, and Memory's Write, Read and Fill. A device
	// that works while it is called is never waited for.
	Waits() int64
	Peak() int64
	Close() error
}

// Pinner is what a Device may offer: host memory that is pinned once is copied faster, and without blocking by Transfers.
type Pinner interface {
	// RegisterHost pins memory that the garbage collector does not own: a mapping.
	RegisterHost(data []byte) (release func() error, err error)
}

// Transfers is what a Program may offer: copies on its own stream, in order with its launches, without waiting. The data
// must stay as it is, and must not be read, until Wait.
type Transfers interface {
	WriteAsync(m Memory, offset int64, data []byte) error // host to device
	ReadAsync(m Memory, offset int64, data []byte) error  // device to host
}

// Setting is a key with its value.
type Setting struct{ Key, Value string }
