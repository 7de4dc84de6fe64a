// Package kernels holds the text of every kernel. One file is one family of kernels; both devices compile the same
// text: package cuda by NVRTC, package host by the system's C++ compiler.
package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed *.cu*
var files embed.FS

// Source gives the text of a kernel file, named without .cu, and the headers that it may include, by name.
// The headers are those of this package; cuda_bf16.h and cuda_fp16.h are the compiler's.
func Source(file string) (text string, headers map[string]string, err error) {
	data, err := files.ReadFile(file + ".cu")
	if err != nil {
		return "", nil, fmt.Errorf("no kernel file %q (there are: %s)", file, strings.Join(Files(), ", "))
	}
	return string(data), Headers(), nil
}

// Headers gives every header of this package, by the name that #include uses.
func Headers() map[string]string {
	headers := map[string]string{}
	for _, name := range names(".cuh") {
		data, err := files.ReadFile(name)
		if err != nil {
			panic("kernels: embedded file vanished: " + err.Error())
		}
		headers[name] = string(data)
	}
	return headers
}

// Files lists the kernel files without .cu, sorted.
func Files() []string {
	list := names(".cu")
	for i, name := range list {
		list[i] = strings.TrimSuffix(name, ".cu")
	}
	return list
}

func names(suffix string) []string {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		panic("kernels: embedded folder unreadable: " + err.Error())
	}
	var list []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			list = append(list, e.Name())
		}
	}
	return list
}
