// Package devicetest is the conformance suite of package device: what every device must do, whatever it is made of. A
// device's own tests call Run. The kernels are those of kernels/check.cu.
package devicetest

import (
	"encoding/binary"
	"testing"

	"samebits/native/device"
)

// Run runs the suite, each test on a device of its own. open opens one, or skips the test; Run closes it.
func Run(t *testing.T, open func(t *testing.T) device.Device) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"memory/alignment", memoryAlignment},
		{"memory/write-read-fill", memoryWriteRead},
		{"memory/bounds", memoryBounds},
		{"memory/accounts", memoryAccounts},
		{"memory/free-twice", memoryFreeTwice},
		{"kernel/arguments", kernelArguments},
		{"kernel/geometry", kernelGeometry},
		{"kernel/element-wise", kernelElementWise},
		{"kernel/shared-memory", kernelSharedMemory},
		{"kernel/warp", kernelWarp},
		{"kernel/last-block", kernelLastBlock},
		{"kernel/rounding", kernelRounding},
		{"program/ranges", programRanges},
		{"program/copy-fill", programCopyFill},
		{"program/empty", programEmpty},
		{"program/two", programTwo},
		{"program/schedule", programSchedule},
		{"program/placed", programPlaced},
		{"graph/replay", graphReplay},
		{"graph/follows-memory", graphFollowsMemory},
		{"graph/capture-runs-nothing", graphCaptureRunsNothing},
		{"graph/release", graphRelease},
		{"graph/nodes", graphNodes},
		{"graph/broken", graphBroken},
		{"graph/other-stream", graphOtherStream},
		{"graph/other-thread", graphOtherThread},
		{"library/convolution", libraryConvolution},
		{"library/linear", libraryLinear},
		{"library/linear-adds", libraryLinearAdds},
		{"library/matmul", libraryMatmul},
		{"library/matvec", libraryMatVec},
		{"library/batch-norm", libraryBatchNorm},
		{"misuse/launch", misuseLaunch},
		{"misuse/range", misuseRange},
		{"misuse/replay-without-capture", misuseReplay},
		{"misuse/after-close", misuseAfterClose},
		{"report/environment", reportEnvironment},
		{"report/choices", reportChoices},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &bench{Device: open(t), t: t}
			t.Cleanup(func() {
				b.clean()
				if err := b.Close(); err != nil {
					t.Errorf("closing the device: %v", err)
				}
			})
			test.run(t, b)
		})
	}
}

// bench is a device with one memory a storage, as a plan would lay out.
type bench struct {
	device.Device
	t        *testing.T
	storages []device.Memory
	programs []device.Program
}

// clean gives back what a test used.
func (b *bench) clean() {
	for _, p := range b.programs {
		if err := p.Close(); err != nil {
			b.t.Errorf("closing a program: %v", err)
		}
	}
	for _, m := range b.storages {
		if err := m.Free(); err != nil {
			b.t.Errorf("freeing memory: %v", err)
		}
	}
	b.programs, b.storages = nil, nil
}

func (b *bench) alloc(bytes int64) device.Memory {
	b.t.Helper()
	m, err := b.Alloc(bytes)
	if err != nil {
		b.t.Fatalf("allocating %d bytes: %v", bytes, err)
	}
	return m
}

// storage makes a storage with a slice's elements in it.
func storage[T any](b *bench, data []T) device.Pointer {
	b.t.Helper()
	m := b.alloc(int64(binary.Size(data)))
	b.storages = append(b.storages, m)
	raw, err := binary.Append(nil, binary.LittleEndian, data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := m.Write(0, raw); err != nil {
		b.t.Fatal(err)
	}
	return device.Pointer{Storage: len(b.storages) - 1}
}

// read gives n elements of a storage.
func read[T any](b *bench, p device.Pointer, n int) []T {
	b.t.Helper()
	data := make([]T, n)
	raw := make([]byte, binary.Size(data))
	if err := b.storages[p.Storage].Read(p.Offset, raw); err != nil {
		b.t.Fatal(err)
	}
	if _, err := binary.Decode(raw, binary.LittleEndian, data); err != nil {
		b.t.Fatal(err)
	}
	return data
}

func (b *bench) resolve(p device.Pointer) uintptr {
	return b.storages[p.Storage].Address() + uintptr(p.Offset)
}

func (b *bench) prepare(list ...device.Command) device.Program {
	b.t.Helper()
	p, err := b.Prepare(list, b.resolve, device.Options{Deterministic: true})
	if err != nil {
		b.t.Fatalf("preparing: %v", err)
	}
	b.programs = append(b.programs, p)
	return p
}

// run prepares and runs a list, and waits for it.
func (b *bench) run(list ...device.Command) device.Program {
	b.t.Helper()
	p := b.prepare(list...)
	b.must(p.Run(0, len(list)))
	b.must(p.Wait())
	return p
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// kernel is a launch in one dimension.
func kernel(entry string, grid, block, shared uint32, args ...any) *device.Kernel {
	return &device.Kernel{File: "check", Entry: entry, Grid: [3]uint32{grid, 1, 1}, Block: [3]uint32{block, 1, 1}, Shared: shared, Args: args}
}

// count is a launch that adds 1 to a counter.
func count(counter device.Pointer) *device.Kernel { return kernel("check_count", 1, 32, 0, counter) }
