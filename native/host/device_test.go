//go:build linux && amd64

package host

import (
	"os"
	"testing"

	"samebits/native/device"
	"samebits/native/device/devicetest"
)

// cacheDir is one folder for all tests, so that a kernel file is compiled once.
var cacheDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "samebits-host-test-")
	if err != nil {
		panic(err)
	}
	cacheDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// open opens a device whose memory is poisoned, closed when the test ends.
func open(t testing.TB, opts ...Option) *Device {
	t.Helper()
	d, err := Open(append([]Option{Cache(cacheDir), Poison()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("closing the device: %v", err)
		}
	})
	return d
}

func TestConformance(t *testing.T) {
	for name, threads := range map[string]int{"one thread": 1, "three threads": 3} {
		t.Run(name, func(t *testing.T) {
			devicetest.Run(t, func(t *testing.T) device.Device {
				d, err := Open(Cache(cacheDir), Poison(), Threads(threads))
				if err != nil {
					t.Fatal(err)
				}
				return d
			})
		})
	}
}
