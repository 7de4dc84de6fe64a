package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/native/device"
)

func TestNodesOfAGraph(t *testing.T) {
	d := openFake(t)
	_, resolve := arena(t, d, 4096)
	p := prepare(t, d, resolve, device.Options{}, saxpy(), &device.Fill{To: at(512), Bytes: 16}, &device.Copy{To: at(1024), From: at(512), Bytes: 16}, saxpy())
	if n, err := p.Capture(); err != nil || n != 4 {
		t.Fatalf("%d nodes, %v", n, err)
	}
	got := p.Nodes()
	if len(got) != 3 || got[arm.KernelNode] != 2 || got[arm.SetNode] != 1 || got[arm.CopyNode] != 1 {
		t.Errorf("%v", got)
	}
}

func TestBrokenCapture(t *testing.T) {
	d := openFake(t)
	m, resolve := arena(t, d, 4096)
	p := prepare(t, d, resolve, device.Options{}, &device.Fill{To: at(512), Bytes: 16}, saxpy())
	if err := m.Write(0, floats(1, 1, 1, 1)); err != nil {
		t.Fatal(err)
	}
	p.(device.Breaker).BreakCapture()
	_, err := p.Capture()
	mustHave(t, err, "CAPTURE_FAILED", "cuStreamSynchronize")
	mustHave(t, p.Replay(), "without a captured graph")
	if _, err := p.Capture(); err != nil {
		t.Fatalf("the next capture fails, too: %v", err)
	}
	if err := p.Replay(); err != nil {
		t.Fatal(err)
	}
	expect(t, m, 512, floats(2, 2, 2, 2))
}

// The new stream waits for the old one, and graph and list run there.
func TestSwitchStream(t *testing.T) {
	d := openFake(t)
	_, resolve := arena(t, d, 4096)
	p := prepare(t, d, resolve, device.Options{}, &device.Fill{To: at(512), Bytes: 16})
	if _, err := p.Capture(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "streams")
	t.Setenv("FAKE_STREAMS", path)
	for _, err := range []error{p.Replay(), p.(device.Switcher).SwitchStream(), p.Replay(), p.Run(0, 1)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("FAKE_STREAMS", "")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var did []string
	on := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		stream, what, _ := strings.Cut(strings.TrimSpace(line), ": ")
		what, _, _ = strings.Cut(what, " ")
		did = append(did, what)
		on[stream] = true
	}
	if got := strings.Join(did, " "); got != "set record wait set set" || len(on) != 2 {
		t.Errorf("%q on %v", got, on)
	}
}

func TestOtherDevices(t *testing.T) {
	d := openFake(t)
	mustHave(t, d.MakeOtherCurrent(), "NO_SECOND_DEVICE")
	t.Setenv("FAKE_DEVICES", "2")
	if err := d.MakeOtherCurrent(); err != nil {
		t.Fatal(err)
	}
	if err := d.Bustle(); err != nil {
		t.Error(err)
	}
}
