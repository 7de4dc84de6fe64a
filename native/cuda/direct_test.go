package cuda

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"samebits/native/device"
)

// stream gives the handle of a program's stream, as a caller would have one of its own.
func stream(p device.Program) uintptr {
	return (*[2]uintptr)(unsafe.Pointer(p.(*program).q))[1] // the field behind the device
}

func TestDirectCopy(t *testing.T) {
	d := openFake(t)
	m, resolve := arena(t, d, 1024)
	p := prepare(t, d, resolve, device.Options{}).(device.Direct)
	want := floats(1, 2, 3, 4)
	if err := m.Write(0, want); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{p.CopyAsync(m.Address()+512, m.Address(), 16), p.CopyAsync(0, 0, 0)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 16)
	if err := m.Read(512, got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("copied %v, want %v", got, want)
	}
}

func TestDirectOrder(t *testing.T) {
	d := openFake(t)
	_, resolve := arena(t, d, 1024)
	p, other := prepare(t, d, resolve, device.Options{}), prepare(t, d, resolve, device.Options{})
	path := filepath.Join(t.TempDir(), "streams")
	calls := func(order func(uintptr) error) []string {
		t.Helper()
		t.Setenv("FAKE_STREAMS", path)
		err := order(stream(other))
		t.Setenv("FAKE_STREAMS", "")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	after, before := calls(p.(device.Direct).After), calls(p.(device.Direct).Before)
	if len(after) != 2 || len(before) != 2 {
		t.Fatalf("after %q, before %q", after, before)
	}
	on := func(line string) string { first, _, _ := strings.Cut(line, " "); return first }
	if on(after[0]) != on(before[1]) || on(after[1]) != on(before[0]) || on(after[0]) == on(after[1]) {
		t.Errorf("after %q and before %q: the streams are not the other way round", after, before)
	}
	for _, lines := range [][]string{after, before} {
		if !strings.Contains(lines[0], "record") || !strings.Contains(lines[1], "wait") {
			t.Errorf("%q: a record is to come before the wait for it", lines)
		}
	}
}

func TestDirectAfterClose(t *testing.T) {
	d := openFake(t)
	_, resolve := arena(t, d, 1024)
	p, err := d.Prepare(nil, resolve, device.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	direct := p.(device.Direct)
	errs := []error{direct.CopyAsync(1, 2, 3), direct.After(0), direct.Before(0)}
	if slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, errClosed) }) {
		t.Errorf("errors %v", errs)
	}
}

func TestDirectOnALostDevice(t *testing.T) {
	d := openFake(t)
	m, resolve := arena(t, d, 1024)
	p := prepare(t, d, resolve, device.Options{}, &device.Kernel{File: "good", Entry: "trap", Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}})
	_ = p.Run(0, 1)
	direct := p.(device.Direct)
	for name, err := range map[string]error{
		"copy": direct.CopyAsync(m.Address(), m.Address()+512, 16), "after": direct.After(0), "before": direct.Before(0),
	} {
		if !isLost(err) {
			t.Errorf("%s gave %v", name, err)
		}
	}
}
