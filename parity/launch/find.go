package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"samebits/bridge/host"
)

const (
	// PythonVariable, PredictorVariable and TrainerVariable name the interpreter and the native plugins in the environment.
	PythonVariable    = "SAMEBITS_PYTHON"
	PredictorVariable = "SAMEBITS_PREDICTOR"
	TrainerVariable   = "SAMEBITS_TRAINER"
)

// pythonFolders are where the Python packages lie below a root: in a bundle, in the repository.
var pythonFolders = []string{"python", "plugins/reference"}

// roots are the folders in whose bin, python and .venv things are looked for: that of the running program, then the
// working directory.
func roots() []string {
	var all []string
	if program, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(program); err == nil {
			program = real
		}
		all = append(all, filepath.Dir(filepath.Dir(program)))
	}
	if here, err := os.Getwd(); err == nil {
		all = append(all, here)
	}
	return all
}

func join(parts ...string) string { return filepath.Join(parts...) }

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// Python finds the interpreter: the option, SAMEBITS_PYTHON, .venv of a root, python3 of PATH.
func (l *Launcher) Python() (string, error) {
	for _, named := range []struct{ by, path string }{
		{"--python", l.options.Python}, {PythonVariable, l.getenv(PythonVariable)},
	} {
		if named.path != "" {
			return resolve("reference", named.by, named.path)
		}
	}
	for _, root := range l.roots {
		if python := join(root, ".venv", "bin", "python"); isFile(python) {
			return python, nil
		}
	}
	if python, err := exec.LookPath("python3"); err == nil {
		return python, nil
	}
	return "", &host.Error{Reason: host.ReasonMissing, Plugin: "reference", Summary: "there is no Python",
		Detail: fmt.Sprintf("looked for .venv in %s and for python3 in PATH; run `make setup`, or name one by --python or %s",
			strings.Join(l.roots, ", "), PythonVariable)}
}

// Predictor finds the native plugin: the option, SAMEBITS_PREDICTOR, bin of a root, PATH.
func (l *Launcher) Predictor() (string, error) {
	return l.nativePlugin("predictor", l.options.Predictor, PredictorVariable)
}

// Trainer finds the native plugin for training: the option, SAMEBITS_TRAINER, bin of a root, PATH.
func (l *Launcher) Trainer() (string, error) {
	return l.nativePlugin("trainer", l.options.Trainer, TrainerVariable)
}

// nativePlugin finds samebits-NAME, and sees whether it is a program.
func (l *Launcher) nativePlugin(name, option, variable string) (string, error) {
	program, err := l.findNative(name, option, variable)
	if err == nil {
		err = host.Inspect(name, program)
	}
	if err != nil {
		return "", err
	}
	return program, nil
}

func (l *Launcher) findNative(name, option, variable string) (string, error) {
	for _, named := range []struct{ by, path string }{{"--" + name, option}, {variable, l.getenv(variable)}} {
		if named.path != "" {
			return resolve(name, named.by, named.path)
		}
	}
	file := "samebits-" + name
	for _, root := range l.roots {
		if program := join(root, "bin", file); isFile(program) {
			return program, nil
		}
	}
	if program, err := exec.LookPath(file); err == nil {
		return program, nil
	}
	return "", &host.Error{Reason: host.ReasonMissing, Plugin: name, Summary: "there is no " + file,
		Detail: fmt.Sprintf("looked in bin of %s and in PATH; run `make build`, or name one by --%s or %s",
			strings.Join(l.roots, ", "), name, variable)}
}

// resolve takes a path, or a name to be found in PATH, that somebody gave.
func resolve(plugin, by, path string) (string, error) {
	if !strings.ContainsRune(path, filepath.Separator) {
		if found, err := exec.LookPath(path); err == nil {
			return found, nil
		}
	}
	if _, err := os.Stat(path); err != nil {
		why := "no such file"
		if named := (*fs.PathError)(nil); errors.As(err, &named) && !errors.Is(err, fs.ErrNotExist) {
			why = named.Err.Error()
		}
		return "", &host.Error{Reason: host.ReasonMissing, Plugin: plugin, Summary: fmt.Sprintf("%s names %s: %s", by, path, why)}
	}
	return filepath.Abs(path)
}
