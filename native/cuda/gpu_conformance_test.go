//go:build gpu

package cuda

import (
	"testing"

	"samebits/native/device"
	"samebits/native/device/devicetest"
)

func TestGPUConformance(t *testing.T) {
	o := gpuOptions(t) // one cache of compiled kernels for all
	devicetest.Run(t, func(t *testing.T) device.Device {
		d, err := Open(0, o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}
