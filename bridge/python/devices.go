package samebits

import (
	"sync"

	"samebits/native/device"
	"samebits/native/devices"
)

// opened are the devices in use, by name. A device has its threads, libraries and compiled kernels once, however many
// models use it, and is closed after the last one.
type opened struct {
	mutex sync.Mutex
	all   map[string]*shared
}

type shared struct {
	device device.Device
	users  int
}

var devicesInUse = opened{all: map[string]*shared{}}

func (o *opened) open(name string, torch []string) (device.Device, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if s := o.all[name]; s != nil {
		s.users++
		return s.device, nil
	}
	d, err := devices.OpenWith(name, devices.Options{TorchFolders: torch})
	if err != nil {
		return nil, err
	}
	o.all[name] = &shared{d, 1}
	return d, nil
}

func (o *opened) close(d device.Device) error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	s := o.all[d.Name()]
	if s.users--; s.users > 0 {
		return nil
	}
	delete(o.all, d.Name())
	return d.Close()
}

// Devices tries every device of this machine: a job that gives {"devices": [devices.Found]}. options is {"torch": [folder]},
// the folders of torch's libraries.
func Devices(ticket int64, options string) (result string, err error) {
	defer finish(&err)
	var o struct {
		Torch []string `json:"torch"`
	}
	if err := fromJSON(options, &o); err != nil {
		return "", err
	}
	return run(ticket, func(*job) (string, error) {
		return asJSON(map[string]any{"devices": devices.ListWith(devices.Options{TorchFolders: o.Torch})}), nil
	})
}
