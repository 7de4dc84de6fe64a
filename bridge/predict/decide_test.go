package predict

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"samebits/bridge/certificate"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
)

// installed makes a PyTorch of a version, and gives the path of a library beside it.
func installed(t *testing.T, version, revision string) string {
	t.Helper()
	packages := t.TempDir()
	library := filepath.Join(packages, "nvidia", "cudnn", "lib", "libcudnn.so.9")
	for _, file := range []struct{ path, text string }{
		{filepath.Join(packages, "torch", "version.py"), "from typing import Optional\n__all__ = ['__version__', 'git_version']\n__version__ = '" + version +
			"'\ndebug = False\ncuda: Optional[str] = '13.0'\ngit_version = '" + revision + "'\n"},
		{library, ""},
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file.path), 0o755), os.WriteFile(file.path, []byte(file.text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return library
}

func TestTorchOf(t *testing.T) {
	for _, c := range []struct{ name, library, version, revision string }{
		{"beside the library's package", installed(t, "2.11.0+cu130", "70d99e9"), "2.11.0+cu130", "70d99e9"},
		{"none there", filepath.Join(t.TempDir(), "lib", "libcudnn.so.9"), "", ""},
		{"no library", "", "", ""},
	} {
		if version, revision := torchOf(c.library); version != c.version || revision != c.revision {
			t.Errorf("%s: %q %q", c.name, version, revision)
		}
	}
}

// What runs is named by its bytes; what PATH has is not known.
func TestBuildOf(t *testing.T) {
	program := filepath.Join(t.TempDir(), "samebits-predictor")
	if err := os.WriteFile(program, []byte("a program"), 0o700); err != nil {
		t.Fatal(err)
	}
	if build, err := buildOf(program); err != nil || build != digest.Bytes([]byte("a program")) {
		t.Errorf("%q, %v", build, err)
	}
	if build, err := buildOf("samebits-predictor"); err != nil || build != "" {
		t.Errorf("of a name: %q, %v", build, err)
	}
	if _, err := buildOf(program + "-missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
}

// builtIn is the statement of a certificate that was built in.
func builtIn(t *testing.T) certificate.Statement {
	t.Helper()
	files, err := certificate.Packaged()
	if err != nil || len(files) == 0 {
		t.Fatalf("%d certificates were built in, %v", len(files), err)
	}
	s, err := certificate.Peek(files[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// certified keeps a statement, good for an hour and signed with a key that the user trusts, in a folder.
func certified(t *testing.T, s certificate.Statement) (certificate.Predicate, string) {
	t.Helper()
	s.Predicate.Created = time.Now().UTC().Truncate(time.Second)
	s.Predicate.Expires = s.Predicate.Created.Add(time.Hour)
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	keys, folder := t.TempDir(), t.TempDir()
	t.Setenv(certificate.FolderVariable, keys)
	trusted := certificate.Trusted{Name: "alice", Public: certificate.Public(key), NotAfter: s.Predicate.Expires}
	if err := (certificate.Keyring{Folder: keys}).Add(trusted); err != nil {
		t.Fatal(err)
	}
	data, err := s.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Predicate.Keep(folder, data); err != nil {
		t.Fatal(err)
	}
	return s.Predicate, folder
}

// A graph may be replayed where cell, recording, machine, PyTorch and engine are those of a certificate. Of the engine and of PyTorch
// the plugin's word does not count.
func TestDecide(t *testing.T) {
	p, folder := certified(t, builtIn(t))
	type asked struct {
		header recording.Header
		digest string
		device string
		build  string
		said   map[string]string
	}
	torch, revision := p.Key["torch"], p.Key["torch_revision"]
	library, other := installed(t, torch, revision), installed(t, torch, "another")
	decide := func(change func(*asked)) certificate.Support {
		a := asked{device: "cuda:0", build: p.Key[certificate.EngineKey], digest: p.Key[certificate.RecordingKey], said: maps.Clone(p.Key), header: recording.Header{
			Family: p.Cell.Family, Size: p.Cell.Size, Task: p.Cell.Task, ImgSize: p.Cell.ImgSize, Batch: p.Cell.Batch, Mode: p.Cell.Mode,
			Precision: p.Cell.Precision, Profile: p.Profile}}
		for _, name := range []string{"torch", "torch_revision", certificate.EngineKey, certificate.RecordingKey} {
			delete(a.said, name)
		}
		a.said["cudnn.path"] = library
		change(&a)
		var said []recording.Setting
		for _, name := range slices.Sorted(maps.Keys(a.said)) {
			said = append(said, recording.Setting{Key: name, Value: a.said[name]})
		}
		m := &Model{options: Options{Device: a.device, Certificates: folder}, build: a.build}
		return m.decide(&recording.Recording{Header: a.header, Digest: a.digest}, said)
	}
	if s := decide(func(*asked) {}); !s.Supported() || !strings.HasPrefix(s.File(), folder) || !s.Expires().Equal(p.Expires) {
		t.Fatalf("%v", s.Err())
	}
	for _, c := range []struct {
		name, want string
		change     func(*asked)
	}{
		{"another engine", certificate.OtherEngine, func(a *asked) { a.build = strings.Repeat("0", 64) }},
		{"another engine that says it is this one", certificate.OtherEngine, func(a *asked) {
			a.said[certificate.EngineKey], a.build = a.build, strings.Repeat("0", 64)
		}},
		{"an engine that nobody knows", certificate.EnvironmentLess, func(a *asked) {
			a.said[certificate.EngineKey], a.build = a.build, ""
		}},
		{"another PyTorch", certificate.OtherTorch, func(a *asked) { a.said["cudnn.path"] = other }},
		{"another PyTorch, and a plugin that says it is this one", certificate.OtherTorch, func(a *asked) {
			a.said["cudnn.path"], a.said["torch"], a.said["torch_revision"] = other, torch, revision
		}},
		{"no PyTorch", certificate.EnvironmentLess, func(a *asked) { delete(a.said, "cudnn.path") }},
		{"another driver", certificate.OtherDriver, func(a *asked) { a.said["driver"] = "1" }},
		{"another recording", certificate.OtherRecording, func(a *asked) { a.digest = strings.Repeat("1", 64) }},
		{"another profile", certificate.OtherProfile, func(a *asked) { a.header.Profile = "exact-2" }},
		{"the host", certificate.NoGPU, func(a *asked) { a.device = "host" }},
	} {
		s := decide(c.change)
		problems := s.Problems()
		if s.Supported() || len(problems) == 0 || problems[0].Reason != c.want {
			t.Errorf("%s: %t, %v", c.name, s.Supported(), problems)
		}
	}
	cell := decide(func(a *asked) { a.device = "host" }).Err().Error()
	if !strings.Contains(cell, p.Cell.String()+" has no") {
		t.Errorf("%s is not named in %s", p.Cell, cell)
	}
}
