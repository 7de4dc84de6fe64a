package ops

import (
	"samebits/native/device"
	"samebits/native/host"
)

func init() {
	devices["host"] = func() (device.Device, error) { return host.Open() }
}
