package cuda

import (
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/native/device"
)

func TestPrepareListsEveryProblem(t *testing.T) {
	d := openFake(t)
	_, inside := arena(t, d, 4096)
	resolve := func(p device.Pointer) uintptr {
		if p.Storage == 7 {
			return 0
		}
		return inside(p)
	}
	wrongCount, wrongSize, wrongType, noEntry, zeroGrid, tooShared := saxpy(), saxpy(), saxpy(), saxpy(), saxpy(), saxpy()
	wrongCount.Args = wrongCount.Args[:3]
	wrongSize.Args = []any{at(0), at(512), float64(2), int32(4)}
	wrongType.Args = []any{at(0), at(512), "two", int32(4)}
	noEntry.Entry = "axpby"
	zeroGrid.Grid[1] = 0
	tooShared.Shared = 1 << 20
	_, err := d.Prepare([]device.Command{
		saxpy(), wrongCount, wrongSize, wrongType, noEntry, zeroGrid, tooShared,
		&device.Copy{To: at(8), From: at(0), Bytes: 16},
		&device.Fill{To: device.Pointer{Storage: 7}, Bytes: 1},
	}, resolve, device.Options{})
	mustHave(t, err,
		"commands[1]: BAD_COMMAND: kernel saxpy: 3 arguments, the kernel wants 4",
		"commands[2]: BAD_COMMAND: kernel saxpy: argument 2 has 8 bytes (float64), the kernel wants 4",
		"commands[3]: BAD_COMMAND: kernel saxpy: argument 2: of type string",
		"commands[4]: UNKNOWN_KERNEL: kernel axpby: good.cu has no entry axpby",
		"commands[5]: BAD_COMMAND: kernel saxpy: grid [1 0 1]",
		"commands[6]: BAD_COMMAND: kernel saxpy: 1048576 bytes of dynamic shared memory",
		"commands[7]: BAD_COMMAND: copy: 16 bytes",
		"commands[8]: BAD_COMMAND: fill: storage 7 has no address",
	)
	if problems, _ := diag.Of(err); len(problems) != 8 {
		t.Errorf("%d problems, want 8", len(problems))
	}
	if d.InUse() != 4096 {
		t.Errorf("%d bytes in use after a failed Prepare", d.InUse())
	}
}

func TestLaunchGeometry(t *testing.T) {
	d := openFake(t)
	_, resolve := arena(t, d, 4096)
	one := [3]uint32{1, 1, 1}
	for _, c := range []struct {
		name        string
		grid, block [3]uint32
		want        string // "" if it is fine
	}{
		{"largest grid", [3]uint32{1<<31 - 1, 65535, 65535}, one, ""},
		{"wide grid", [3]uint32{1 << 31, 1, 1}, one, "grid [2147483648 1 1]; a GPU takes at most [2147483647 65535 65535]"},
		{"high grid", [3]uint32{1, 65536, 1}, one, "grid [1 65536 1]"},
		{"deep grid", [3]uint32{1, 1, 65536}, one, "grid [1 1 65536]"},
		{"no grid", [3]uint32{1, 1, 0}, one, "none may be 0"},
		{"wide block", one, [3]uint32{1024, 1, 1}, ""},
		{"high block", one, [3]uint32{1, 1024, 1}, ""},
		{"deep block", one, [3]uint32{16, 1, 64}, ""},
		{"no block", one, [3]uint32{1, 0, 1}, "none may be 0"},
		{"too wide block", one, [3]uint32{1025, 1, 1}, "block [1025 1 1]; a GPU takes at most [1024 1024 64]"},
		{"too high block", one, [3]uint32{1, 1025, 1}, "block [1 1025 1]"},
		{"too deep block", one, [3]uint32{1, 1, 65}, "block [1 1 65]"},
		{"too many threads", one, [3]uint32{33, 32, 1}, "block [33 32 1] has 1056 threads; a GPU takes at most 1024"},
		{"many more threads", one, [3]uint32{1024, 1024, 64}, "67108864 threads"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := saxpy()
			k.Grid, k.Block = c.grid, c.block
			p, err := d.Prepare([]device.Command{k}, resolve, device.Options{})
			if c.want != "" {
				mustHave(t, err, "commands[0]: BAD_COMMAND: kernel saxpy: ", c.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKernelsThatDoNotCompile(t *testing.T) {
	d := openFake(t)
	_, resolve := arena(t, d, 4096)
	bad, unknown := saxpy(), saxpy()
	bad.File, unknown.File = "bad", "absent"
	_, err := d.Prepare([]device.Command{bad, unknown}, resolve, device.Options{})
	mustHave(t, err, "KERNEL_COMPILE", "bad.cu(1): error: as told", "UNKNOWN_KERNEL", "absent")
}

func TestBadLaunchNamesTheCommand(t *testing.T) {
	d := openFake(t)
	_, resolve := arena(t, d, 4096)
	huge := saxpy()
	huge.Block[0] = 512 // a block that GPUs can launch, but not with this kernel
	p := prepare(t, d, resolve, device.Options{}, saxpy(), huge)
	err := p.Run(0, 2)
	mustHave(t, err, "commands[1]: LAUNCH_FAILED: kernel saxpy: driver: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (1)")
	if err := p.Run(0, 1); err != nil {
		t.Errorf("the device does not go on after a refused launch: %v", err)
	}
}

func TestLostDevice(t *testing.T) {
	d, err := Open(0, fakeOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	m, resolve := arena(t, d, 4096)
	trap := &device.Kernel{File: "good", Entry: "trap", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	p := prepare(t, d, resolve, device.Options{}, trap, saxpy())
	err = p.Run(0, 2)
	mustHave(t, err, "commands[1]: DEVICE_LOST: kernel saxpy: driver: cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "start a new process")
	for name, err := range map[string]error{"wait": p.Wait(), "write": m.Write(0, []byte{1}), "replay": func() error { _, err := p.Capture(); return err }()} {
		if !isLost(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = d.Alloc(1)
	if !isLost(err) {
		t.Errorf("alloc: %v", err)
	}
}

func TestLostDetail(t *testing.T) {
	for code, want := range map[uint32]bool{700: false, 710: true, 719: false} {
		detail := lostDetail(code)
		if strings.Contains(detail, "an index is out of range") != want || !strings.Contains(detail, "start a new process") {
			t.Errorf("%d: %s", code, detail)
		}
	}
}

func TestFailedCapture(t *testing.T) {
	d := openFake(t)
	m, resolve := arena(t, d, 4096)
	stall := &device.Kernel{File: "good", Entry: "stall", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	p := prepare(t, d, resolve, device.Options{}, &device.Fill{To: at(512), Bytes: 16}, saxpy(), stall)
	if err := m.Write(0, floats(1, 1, 1, 1)); err != nil {
		t.Fatal(err)
	}
	_, err := p.Capture()
	mustHave(t, err, "commands[2]: CAPTURE_FAILED: kernel stall", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
	if strings.Contains(err.Error(), "cuStreamEndCapture") {
		t.Errorf("the consequence is told instead of the cause: %v", err)
	}
	mustHave(t, p.Replay(), "without a captured graph")
	if err := p.Run(0, 3); err != nil {
		t.Fatalf("the program does not run eagerly after a failed capture: %v", err)
	}
	expect(t, m, 512, floats(2, 2, 2, 2))
}
