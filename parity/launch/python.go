package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"samebits/bridge/host"
)

// Entry is one line of the reference plugin's table of families.
type Entry struct {
	Family  string `json:"family"`
	Task    string `json:"task"`
	Size    string `json:"size"`   // of the parity list, taken where none is named
	ImgSize int64  `json:"imgsz"`  // of the parity list
	Native  int64  `json:"native"` // the image size that the family was made for
	Group   string `json:"group"`  // Matrix; or beside it: variant, own-path, custom, and beyond, which is refused; or Planted
	// Unpredictable says why pictures cannot be predicted with it; empty: they can.
	Unpredictable string `json:"unpredictable,omitempty"`
}

// Matrix is the group of the families and tasks of the parity list.
const Matrix = "matrix"

// Planted is the group of the families that parity selftest tries the suite on.
const Planted = "planted"

// Families asks the reference plugin for its table, without importing torch.
func (l *Launcher) Families(ctx context.Context) ([]Entry, error) {
	out, err := l.runPython(ctx, "-m", "samebits_reference.cells")
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var e Entry
		if err := decoder.Decode(&e); err != nil {
			return nil, fmt.Errorf("the table of families: %w", err)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// PythonInfo is what an interpreter says of itself without importing anything large.
type PythonInfo struct {
	Path      string            `json:"path"`
	Version   string            `json:"version"`
	Packages  map[string]string `json:"packages"`  // version by name; empty text: not installed
	Libraries []string          `json:"libraries"` // folders of NVIDIA's libraries beside torch
	Torch     TorchInfo         `json:"torch"`
}

// TorchInfo is what PyTorch's own files say of its build; empty where there is none.
type TorchInfo struct {
	Version  string `json:"version"`  // 2.11.0+cu130
	Revision string `json:"revision"` // of its sources
}

// Packages are those that Inspect asks for: what the reference plugin needs, then what some families need.
var Packages = []string{"torch", "libreyolo", "grpcio", "protobuf", "blake3", "safetensors", "numpy", "torchvision", "timm", "transformers"}

// inspect prints PythonInfo for the packages that its arguments name.
const inspect = `
import glob, importlib.metadata, importlib.util, json, os, re, sys

def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""

def build(folder):
    try:
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as file:
            said = dict(re.findall(r"^(__version__|git_version) = '([^']*)'", file.read(), re.MULTILINE))
    except OSError:
        said = {}
    return {"version": said.get("__version__", ""), "revision": said.get("git_version", "")}

folders = []
about = {}
torch = importlib.util.find_spec("torch")
if torch and torch.origin:
    packages = os.path.dirname(os.path.dirname(torch.origin))
    folders = sorted(glob.glob(os.path.join(packages, "nvidia", "*", "lib")))
    folders.append(os.path.join(packages, "torch", "lib"))
    about = build(os.path.dirname(torch.origin))
json.dump({"path": sys.executable, "version": sys.version.split()[0],
           "packages": {name: version(name) for name in sys.argv[1:]}, "libraries": folders, "torch": about}, sys.stdout)
`

// Inspect asks the interpreter for its version and packages.
func (l *Launcher) Inspect(ctx context.Context) (PythonInfo, error) {
	var info PythonInfo
	out, err := l.runPython(ctx, append([]string{"-c", inspect}, Packages...)...)
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(out, &info); err != nil {
		return info, fmt.Errorf("what Python says of itself: %w", err)
	}
	return info, nil
}

// findLibraries gives the folders of the libraries that torch uses, as a list for the environment.
func (l *Launcher) findLibraries() string {
	info, err := l.Inspect(context.Background())
	if err != nil {
		return "" // the native engine looks for itself, and says what it lacks
	}
	return strings.Join(info.Libraries, string(os.PathListSeparator))
}

// pythonDeadline is for what imports nothing large.
const pythonDeadline = time.Minute

// runPython runs the interpreter with the environment of the reference plugin and gives what it printed.
func (l *Launcher) runPython(ctx context.Context, args ...string) ([]byte, error) {
	python, err := l.Python()
	if err != nil {
		return nil, err
	}
	return run(ctx, "reference", l.pythonEnvironment(), python, args...)
}

// run runs a plugin's program beside its life as a plugin, for what imports nothing large.
func run(ctx context.Context, plugin string, env []string, program string, args ...string) ([]byte, error) {
	return runWithin(ctx, pythonDeadline, plugin, env, program, args...)
}

func runWithin(ctx context.Context, deadline time.Duration, plugin string, env []string, program string, args ...string) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	cmd := exec.CommandContext(within, program, args...)
	for _, key := range host.AllowedEnv {
		if value, set := os.LookupEnv(key); set {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return out, nil
	}
	e := &host.Error{Reason: host.ReasonExited, Plugin: plugin, During: program + " " + args[0], Summary: err.Error(),
		Log: lastLines(stderr.String(), 10)}
	var status *exec.ExitError
	switch {
	case ctx.Err() != nil:
		e.Reason, e.Summary = host.ReasonInterrupted, "it was interrupted"
	case within.Err() != nil:
		e.Reason, e.Summary = host.ReasonHung, fmt.Sprintf("it did not end within %v, so it was killed", deadline)
	case !errors.As(err, &status):
		e.Reason = host.ReasonStart
	}
	return nil, e
}

func lastLines(text string, n int) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if lines[0] == "" {
		return nil
	}
	return lines[max(len(lines)-n, 0):]
}
