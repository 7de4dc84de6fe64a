// Package devices opens devices by name: host, cuda:0, cuda:1.
package devices

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"samebits/bridge/diag"
	"samebits/native/cuda"
	"samebits/native/device"
	"samebits/native/host"
)

// Options say where a device finds what it needs. The zero value looks as package cuda does.
type Options struct {
	// TorchFolders are the folders of torch's NVIDIA libraries. The variable SAMEBITS_TORCH_LIB comes before them.
	TorchFolders []string
	// Log is told what a person may want to know, such as damage in a cache; nil: standard error is.
	Log func(line string)
}

// forCUDA gives the options of package cuda.
func (o Options) forCUDA() cuda.Options {
	out := cuda.Options{Log: o.Log}
	if os.Getenv(cuda.FoldersVariable) == "" {
		out.Folders = o.TorchFolders
	}
	if out.Log == nil {
		out.Log = func(line string) { fmt.Fprintln(os.Stderr, "samebits: "+line) }
	}
	return out
}

// Open opens a device.
func Open(name string) (device.Device, error) { return OpenWith(name, Options{}) }

// OpenWith is Open with options.
func OpenWith(name string, o Options) (device.Device, error) {
	if name == "host" {
		d, err := host.Open()
		if err != nil {
			return nil, err // not a nil *host.Device in an interface
		}
		return d, nil
	}
	index, ok := strings.CutPrefix(name, "cuda:")
	n, err := strconv.Atoi(index)
	if !ok || err != nil || n < 0 || strconv.Itoa(n) != index { // cuda:01 would be another name of cuda:1
		return nil, diag.New("UNKNOWN_DEVICE", "device", "no device %q; there are host and cuda:N", name)
	}
	d, err := cuda.Open(n, o.forCUDA())
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Usable names the devices that can be opened as far as that shows without opening a GPU, which takes long: one that is
// broken or taken is named too.
func Usable() []string {
	var names []string
	if try("host", Options{}).Problem == "" {
		names = append(names, "host")
	}
	count, err := cuda.Count(Options{}.forCUDA())
	if err != nil {
		return names
	}
	for i := range count {
		names = append(names, fmt.Sprintf("cuda:%d", i))
	}
	return names
}

// Found is a device of this machine, usable or not.
type Found struct {
	Name        string           `json:"name"`
	Problem     string           `json:"problem,omitempty"` // why it cannot be opened
	Environment []device.Setting `json:"environment,omitempty"`
}

// List tries every device of this machine. It always names host and cuda:0; further GPUs
// only while they open.
func List() []Found { return ListWith(Options{}) }

// ListWith is List with options.
func ListWith(o Options) []Found {
	found := []Found{try("host", o)}
	for i := 0; ; i++ {
		f := try(fmt.Sprintf("cuda:%d", i), o)
		if i > 0 && f.Problem != "" {
			return found
		}
		found = append(found, f)
		if f.Problem != "" {
			return found
		}
	}
}

func try(name string, o Options) Found {
	d, err := OpenWith(name, o)
	if err != nil {
		return Found{Name: name, Problem: err.Error()}
	}
	f := Found{Name: name, Environment: d.Environment()}
	if err := d.Close(); err != nil {
		f.Problem = err.Error()
	}
	return f
}
