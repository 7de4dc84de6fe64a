//go:build gpu

package cuda

import (
	"bytes"
	"runtime"
	"slices"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/tensor"
	"samebits/native/device"
)

// A capture on a GPU without room works, or fails cleanly: the program runs on, and can be captured when there is room again.
func TestGPUCaptureWithoutRoom(t *testing.T) {
	d := openGPU(t)
	m, resolve := arena(t, d, 4<<20)
	const n, kernels = 1000, 4000
	list := []device.Command{&device.Fill{To: at(1 << 20), Bytes: 4 * n}}
	for range kernels {
		list = append(list, gpuSaxpy(n))
	}
	p := prepare(t, d, resolve, device.Options{}, list...)
	x := slices.Repeat([]float64{1}, n)
	if err := m.Write(0, encode(tensor.Float32, x)); err != nil {
		t.Fatal(err)
	}
	check := func(what string) {
		t.Helper()
		for i, got := range decode(tensor.Float32, read(t, m, 1<<20, 4*n)) {
			if got != 2*kernels {
				t.Fatalf("%s: element %d is %v", what, i, got)
			}
		}
	}
	finish(t, p, len(list))
	check("before")
	var held []device.Memory
	for size := int64(8 << 30); size >= 1<<12; {
		block, err := d.Alloc(size)
		if err != nil {
			size /= 2
			continue
		}
		held = append(held, block)
	}
	t.Logf("%d blocks fill the GPU", len(held))
	_, err := p.Capture()
	if problems, _ := diag.Of(err); err != nil && (len(problems) != 1 || problems[0].Reason != "CAPTURE_FAILED") {
		t.Errorf("%v", err)
	}
	t.Logf("the capture without room: %v", err)
	finish(t, p, len(list))
	check("without room")
	for _, block := range held {
		if err := block.Free(); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Capture(); err != nil {
		t.Fatal(err)
	}
	if err := m.Fill(1<<20, 4*n, 0xff); err != nil {
		t.Fatal(err)
	}
	if err := p.Replay(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	check("with room again")
	if kinds := p.Nodes(); kinds[arm.KernelNode] != kernels || kinds[arm.SetNode] != 1 || len(kinds) != 2 {
		t.Errorf("the graph has %v", kinds)
	}
}

// Calls work in a thread where another device is current, and leave it so if they are asked to.
func TestGPUOtherDeviceIsCurrent(t *testing.T) {
	d := openGPU(t)
	m, resolve := arena(t, d, 4<<20)
	p := prepare(t, d, resolve, device.Options{}, &device.Fill{To: at(0), Bytes: 64, Byte: 7})
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.MakeOtherCurrent(); err != nil {
		if problems, _ := diag.Of(err); len(problems) == 1 && problems[0].Reason == "NO_SECOND_DEVICE" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	other := d.current()
	restore := d.KeepCurrent()
	if _, err := p.Capture(); err != nil {
		t.Fatal(err)
	}
	if err := p.Replay(); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read(t, m, 0, 64), bytes.Repeat([]byte{7}, 64)) {
		t.Error("the replay wrote something else")
	}
	restore()
	if d.current() != other {
		t.Error("the other device is not current again")
	}
}
