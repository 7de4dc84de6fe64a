package launch

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"samebits/bridge/digest"
)

// EngineBuild is the digest of the native plugin's program.
func (l *Launcher) EngineBuild() (string, error) { return build(l.Predictor) }

// TrainerBuild is the digest of the program for training.
func (l *Launcher) TrainerBuild() (string, error) { return build(l.Trainer) }

func build(find func() (string, error)) (string, error) {
	program, err := find()
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(program)
	if err != nil {
		return "", fmt.Errorf("digest of the native engine: %w", err)
	}
	return digest.Bytes(data), nil
}

// ReferenceBuild is the digest of the reference plugin's sources: of a list of their digests and names, as b3sum prints it.
// It is empty where the plugin is one of the interpreter's own packages.
func (l *Launcher) ReferenceBuild() (string, error) {
	path := l.pythonPath()
	if len(path) == 0 {
		return "", nil
	}
	folder := path[0]
	var list strings.Builder
	for _, name := range []string{"samebits_reference", "samebits_wire"} {
		files := os.DirFS(folder)
		err := fs.WalkDir(files, name, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".py" {
				return err
			}
			data, err := fs.ReadFile(files, path)
			fmt.Fprintf(&list, "%s  %s\n", digest.Bytes(data), path)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("digest of the reference plugin: %w", err)
		}
	}
	return digest.Bytes([]byte(list.String())), nil
}
