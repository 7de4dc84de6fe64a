package host

import (
	"embed"
	"io/fs"
	"path"
)

// shim is what turns CUDA C++ into C++: see shim/cuda_host.h.
//
//go:embed launch.h shim/*.h
var shim embed.FS

// shimHeaders gives its files by the names that #include uses.
func shimHeaders() map[string]string {
	headers := map[string]string{}
	err := fs.WalkDir(shim, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := shim.ReadFile(name)
		headers[path.Base(name)] = string(data)
		return err
	})
	if err != nil {
		panic("host: embedded folder unreadable: " + err.Error())
	}
	return headers
}
