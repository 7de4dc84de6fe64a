package predict

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"samebits/bridge/diag"
)

// Picture is a file to predict.
type Picture struct {
	Path string
	Name string // that the names of its files begin with, different from all others
}

// extensions are those of LibreYOLO's own folders of pictures.
var extensions = []string{".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tiff", ".tif"}

// Find gives the pictures that sources name (files, folders with all that lies below, patterns), in their order, and what is
// wrong with sources.
func Find(sources []string) ([]Picture, diag.Problems) {
	var pictures []Picture
	var problems diag.Problems
	taken, again := map[string]bool{}, map[string]int{}
	for _, source := range sources {
		paths, problem := expand(source)
		if problem != nil {
			problem.Path = source
			problems = append(problems, *problem)
		}
		for _, path := range paths {
			if problem := check(path); problem != nil {
				problem.Path = path
				problems = append(problems, *problem)
				continue
			}
			base := filepath.Base(path)
			name := base
			for taken[name] { // a file may be called like what is made here, too
				again[base]++
				name = fmt.Sprintf("%s-%d", base, again[base]+1)
			}
			taken[name] = true
			pictures = append(pictures, Picture{path, name})
		}
	}
	return pictures, problems
}

func expand(source string) ([]string, *diag.Problem) {
	info, err := os.Stat(source)
	switch {
	case err == nil && info.IsDir():
		return below(source)
	case err == nil || !strings.ContainsAny(source, "*?["):
		return []string{source}, nil
	}
	paths, err := filepath.Glob(source)
	if err != nil {
		return nil, &diag.Problem{Reason: "BAD_PATTERN", Summary: err.Error()}
	}
	paths = slices.DeleteFunc(paths, func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir()
	})
	if len(paths) == 0 {
		return nil, &diag.Problem{Reason: "NO_MATCH", Summary: "no file matches"}
	}
	return paths, nil
}

// below gives all pictures below a folder, by their extensions.
func below(folder string) ([]string, *diag.Problem) {
	var paths []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains(extensions, strings.ToLower(filepath.Ext(path))) {
			paths = append(paths, path)
		}
		return err
	})
	switch {
	case err != nil:
		return paths, &diag.Problem{Reason: "UNREADABLE_FOLDER", Summary: err.Error()}
	case len(paths) == 0:
		return nil, &diag.Problem{Reason: "EMPTY_FOLDER", Summary: "there is no picture below it",
			Detail: "pictures are called " + strings.Join(extensions, ", ")}
	}
	return paths, nil
}

// kind says in words what lies at a path and is no file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return m.Type().String()
}

// check says what is wrong with a file before anybody opens it.
func check(path string) *diag.Problem {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &diag.Problem{Reason: "NO_SUCH_FILE", Summary: "there is no such file"}
	case err != nil:
		return &diag.Problem{Reason: "UNREADABLE_FILE", Summary: err.Error()}
	case !info.Mode().IsRegular():
		return &diag.Problem{Reason: "NO_FILE", Summary: "it is no file but " + kind(info.Mode())}
	case info.Size() == 0:
		return &diag.Problem{Reason: "EMPTY_FILE", Summary: "it has no bytes"}
	case !utf8.ValidString(path):
		return &diag.Problem{Reason: "BAD_NAME", Summary: "its name is not UTF-8, and cannot be told to a plugin"}
	}
	return nil
}
