package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"samebits/bridge/diag"
)

// FoldersVariable names torch's library folders, separated by colons.
const FoldersVariable = "SAMEBITS_TORCH_LIB"

// Libraries are the files that the engine opens, by full path.
type Libraries struct {
	NVRTCBuiltins string
	NVRTC         string
	CublasLt      string
	Cublas        string
	Cudnn         string
	CudnnParts    []string // in the order in which they need each other
	Include       string   // folder of cuda_bf16.h, for NVRTC
}

// Locate looks for every library in the folders; the first folder that has it wins. What it does not find, it lists
// with the folders it tried, and gives the rest.
func Locate(folders []string) (Libraries, diag.Problems) {
	var (
		found    Libraries
		problems diag.Problems
	)
	for _, want := range []struct {
		name string
		to   *string
	}{
		{"libnvrtc-builtins", &found.NVRTCBuiltins},
		{"libnvrtc", &found.NVRTC},
		{"libcublasLt", &found.CublasLt},
		{"libcublas", &found.Cublas},
		{"libcudnn", &found.Cudnn},
	} {
		if *want.to = find(folders, want.name); *want.to == "" {
			problems = append(problems, notFound(want.name+".so.*", folders))
		}
	}
	if found.Cudnn != "" {
		found.CudnnParts = cudnnParts(filepath.Dir(found.Cudnn))
	}
	var tried []string
	for _, f := range folders {
		include := filepath.Join(filepath.Dir(filepath.Clean(f)), "include")
		tried = append(tried, include)
		if isFile(filepath.Join(include, "cuda_bf16.h")) && isFile(filepath.Join(include, "cuda_fp16.h")) {
			found.Include = include
			break
		}
	}
	if found.Include == "" {
		problems = append(problems, notFound("cuda_bf16.h", tried))
	}
	return found, problems
}

func notFound(name string, folders []string) diag.Problem {
	p := diag.Problem{Reason: "NO_LIBRARY", Path: name}
	if len(folders) == 0 {
		p.Summary = name + " was looked for nowhere: no PyTorch with CUDA was found"
	} else {
		p.Summary = name + " is in none of " + strings.Join(folders, ", ")
	}
	p.Detail = fmt.Sprintf("set %s to the folders of torch's NVIDIA libraries, separated by colons", FoldersVariable)
	return p
}

// find gives name.so.N in the first folder that has one: the shortest version, then the highest.
func find(folders []string, name string) string {
	pattern := regexp.MustCompile("^" + regexp.QuoteMeta(name) + `\.so(\.[0-9]+)+$`)
	for _, folder := range folders {
		var names []string
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if pattern.MatchString(e.Name()) {
				names = append(names, e.Name())
			}
		}
		if len(names) == 0 {
			continue
		}
		sort.Slice(names, func(i, j int) bool {
			a, b := strings.Count(names[i], "."), strings.Count(names[j], ".")
			if a != b {
				return a < b
			}
			if len(names[i]) != len(names[j]) {
				return len(names[i]) > len(names[j])
			}
			return names[i] > names[j]
		})
		return filepath.Join(folder, names[0])
	}
	return ""
}

// cudnnParts lists the libraries that libcudnn opens by itself. The others need graph, then ops.
func cudnnParts(folder string) []string {
	parts, err := filepath.Glob(filepath.Join(folder, "libcudnn_*.so.*"))
	if err != nil {
		return nil
	}
	rank := func(path string) int {
		switch base := filepath.Base(path); {
		case strings.HasPrefix(base, "libcudnn_graph."):
			return 0
		case strings.HasPrefix(base, "libcudnn_ops."):
			return 1
		}
		return 2
	}
	sort.SliceStable(parts, func(i, j int) bool { return rank(parts[i]) < rank(parts[j]) })
	return parts
}

// Folders are the library folders of the PyTorch at hand: those that SAMEBITS_TORCH_LIB names, or those of the active
// virtual environment, or those of python3.
func Folders() []string {
	if list := os.Getenv(FoldersVariable); list != "" {
		return filepath.SplitList(list)
	}
	var prefixes []string
	if venv := os.Getenv("VIRTUAL_ENV"); venv != "" {
		prefixes = append(prefixes, venv)
	}
	if python, err := exec.LookPath("python3"); err == nil {
		prefixes = append(prefixes, filepath.Dir(filepath.Dir(python)))
		if real, err := filepath.EvalSymlinks(python); err == nil {
			prefixes = append(prefixes, filepath.Dir(filepath.Dir(real)))
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		prefixes = append(prefixes, filepath.Join(home, ".local"))
	}
	for _, prefix := range append(prefixes, "/usr/local", "/usr") {
		if folders := FoldersBeside(prefix); len(folders) > 0 {
			return folders
		}
	}
	return nil
}

// FoldersBeside are the folders of NVIDIA's libraries in the Python installation or environment at prefix: those of
// the first of its package folders that has cuDNN.
func FoldersBeside(prefix string) []string {
	for _, packages := range []string{"lib/python3*/site-packages", "lib64/python3*/site-packages",
		"lib/python3*/dist-packages", "local/lib/python3*/dist-packages"} {
		sites, err := filepath.Glob(filepath.Join(prefix, packages))
		if err != nil {
			continue
		}
		for _, site := range sites {
			folders, err := filepath.Glob(filepath.Join(site, "nvidia", "*", "lib"))
			if err == nil && find(folders, "libcudnn") != "" {
				return append(folders, filepath.Join(site, "torch", "lib"))
			}
		}
	}
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
