package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"samebits/bridge/certificate"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	grant "samebits/parity/certificate"
	"samebits/parity/launch"
	"samebits/parity/suite/suitetest"
)

// certifiable is a backend of fakes whose machine and programs say all that a certificate is bound to.
type certifiable struct {
	*fakes
	program string
	driver  string
}

func (f certifiable) Predictor() (string, error) { return f.program, nil }

func (f certifiable) EngineBuild() (string, error) {
	data, err := os.ReadFile(f.program)
	return digest.Bytes(data), err
}

func (f certifiable) settings() []recording.Setting {
	return []recording.Setting{{Key: "gpu", Value: "NVIDIA H200"}, {Key: "gpu.arch", Value: "sm_90"}, {Key: "gpu.sms", Value: "132"},
		{Key: "driver", Value: f.driver}, {Key: "cuda", Value: "13.0"}, {Key: "cudnn", Value: "9.19"}, {Key: "cublas", Value: "13.1.0"},
		{Key: "cublaslt", Value: "13.1.0"}, {Key: "nvrtc", Value: "13.0"}}
}

func (f certifiable) Inspect(context.Context) (launch.PythonInfo, error) {
	return launch.PythonInfo{Torch: launch.TorchInfo{Version: "2.11.0+cu130", Revision: "70d9"}}, nil
}

func (f certifiable) Devices(context.Context) ([]launch.Device, error) {
	d := launch.Device{Name: "cuda:0", Environment: f.settings()}
	if !f.gpu {
		d = launch.Device{Name: "cuda:0", Problem: "libcuda.so.1: no such file"}
	}
	return []launch.Device{{Name: "host"}, d}, nil
}

// machine is a folder to certify in, with keys of its own.
type machine struct {
	t       *testing.T
	folder  string
	program string
	driver  string
	gpu     bool
	faults  suitetest.Faults
	declare []recording.Setting
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, folder: t.TempDir(), driver: "580.159.04", gpu: true}
	t.Setenv(certificate.FolderVariable, filepath.Join(m.folder, "keys"))
	t.Setenv(certificatesVariable, filepath.Join(m.folder, "certificates"))
	m.program = filepath.Join(m.folder, "samebits-predictor")
	m.engine("an engine")
	return m
}

func (m *machine) engine(text string) {
	m.t.Helper()
	if err := os.WriteFile(m.program, []byte(text), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

// parity runs a command, and wants a status and something said.
func (m *machine) parity(status int, says string, args ...string) string {
	m.t.Helper()
	f := &fakes{Starter: suitetest.Starter{Faults: m.faults}, gpu: m.gpu}
	c := certifiable{f, m.program, m.driver}
	for _, s := range c.settings() {
		f.Environment = append(f.Environment, recording.Setting{Key: s.Key, Value: s.Value})
	}
	f.Environment = append(f.Environment, recording.Setting{Key: "torch", Value: "2.11.0+cu130"}, recording.Setting{Key: "torch_revision", Value: "70d9"})
	f.Environment = append(f.Environment, m.declare...)
	var out, err strings.Builder
	a := &app{out: &out, err: &err, backend: func(o launch.Options) backend { return c }}
	got := a.run(m.t.Context(), args)
	if got != status || !strings.Contains(out.String()+err.String(), says) {
		m.t.Errorf("parity %s: status %d instead of %d, or lacks %q\n%s%s", strings.Join(args, " "), got, status, says, out.String(), err.String())
	}
	return out.String()
}

// flags counts the cells that have SUPPORTS_CUDA_GRAPH.
func (m *machine) flags() int {
	m.t.Helper()
	count := 0
	for line := range strings.Lines(m.parity(0, "", "status", "--json")) {
		var f grant.Flag
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			m.t.Fatal(err)
		}
		if f.Supports {
			count++
		}
	}
	return count
}

func TestCertify(t *testing.T) {
	m := newMachine(t)
	m.parity(2, "KEY_MISSING", "certify", "fake")
	list := filepath.Join(m.folder, "keys", "trusted.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(list), 0o700), os.WriteFile(list, []byte("torn"), 0o600)); err != nil {
		t.Fatal(err)
	}
	m.parity(2, "TRUST_INVALID", "keys", "new", "alice")
	if err := os.Remove(list); err != nil {
		t.Fatal(err)
	}
	m.parity(0, "trusted here until", "keys", "new", "alice") // nothing of the first try is in the way
	m.parity(0, "private key here", "keys", "list")
	m.parity(2, "goldens is built into this program", "keys", "untrust", "goldens")
	m.parity(2, "nobody of the name bob is trusted", "keys", "untrust", "bob")
	m.parity(0, "certified as", "certify", "fake")
	file := filepath.Join(m.folder, "certificates", "classify", "fake-s-8-b1-predict-fp32.dsse.json")
	m.parity(0, "signed by alice", "certificate", "verify", file)
	m.parity(0, "SAME-RECORDING", "certificate", "show", file)
	torn := filepath.Join(m.folder, "torn.dsse.json")
	if err := os.WriteFile(torn, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := m.parity(1, torn, "certificate", "show", torn, file); !strings.Contains(out, "SAME-RECORDING") {
		t.Errorf("one that is torn hides the other: %s", out)
	}
	if n := m.flags(); n != 1 {
		t.Errorf("%d flags", n)
	}
	m.parity(0, "SUPPORTS_CUDA_GRAPH is true for 1 of", "status")
	m.parity(0, "fake-s classify predict 8 batch 1 fp32 is certified already as", "certify", "fake", "--resume")
	if out := m.parity(0, "1 of 2 cells are certified already", "certify", "fake", "--resume", "--precision", "fp32,bf16"); strings.Count(out, "certified as") != 1 {
		t.Errorf("bf16 alone was to be certified: %s", out)
	}
	if err := os.Remove(filepath.Join(m.folder, "certificates", "classify", "fake-s-8-b1-predict-bf16.dsse.json")); err != nil {
		t.Error(err)
	}
	page := filepath.Join(m.folder, "FLAGS.md")
	m.parity(0, "", "status", "--write-flags", page)
	if data, err := os.ReadFile(page); err != nil || !strings.Contains(string(data), "| classify | fake | s | 8 | 1 | predict | fp32 |") {
		t.Errorf("%v %s", err, data)
	}
	for _, c := range []struct {
		want   string
		change func()
	}{
		{"OTHER_DRIVER", func() { m.driver = "580.159.05" }},
		{"OTHER_ENGINE", func() { m.engine("another engine") }},
		{"NO_GPU", func() { m.gpu = false }},
	} {
		c.change()
		m.parity(1, c.want, "certificate", "verify", file)
		if n := m.flags(); n != 0 {
			t.Errorf("%s: %d flags", c.want, n)
		}
		if c.want == "NO_GPU" {
			m.parity(1, "--environment none checks all but the environment", "certificate", "verify", file)
			m.parity(0, "signed by alice", "certificate", "verify", file, "--environment", "none")
		}
		m.driver, m.gpu = "580.159.04", true
		m.engine("an engine")
	}
	m.parity(1, "OTHER_PROFILE", "certificate", "verify", file, "--profile", "exact-2")
	m.parity(0, "", "keys", "untrust", "alice")
	m.parity(1, "KEY_UNKNOWN", "certificate", "verify", file)
	public := filepath.Join(m.folder, "keys", "alice.pub")
	yesterday, tomorrow := time.Now().UTC().Add(-24*time.Hour), time.Now().UTC().Add(24*time.Hour).Format(time.DateOnly)
	for _, until := range []string{"2020-01-01", yesterday.Format(time.DateOnly)} {
		m.parity(2, "--until "+until+": that day is past", "keys", "trust", public, "--name", "bob", "--until", until)
		m.parity(2, "--until "+until+": that day is past", "keys", "new", "carol", "--until", until)
	}
	m.parity(1, "KEY_UNKNOWN", "certificate", "verify", file)
	m.parity(0, "", "keys", "trust", public, "--name", "bob", "--until", tomorrow)
	m.parity(0, "signed by bob", "certificate", "verify", file)
	m.parity(0, "", "keys", "untrust", "bob")
	data, err := os.ReadFile(public)
	if err != nil {
		t.Fatal(err)
	}
	key, err := certificate.ParsePublic(data, public)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := certificate.UserKeyring()
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.Add(certificate.Trusted{Name: "bob", Public: key, NotAfter: yesterday}); err != nil { // it was good until then
		t.Fatal(err)
	}
	m.parity(1, "TRUST_EXPIRED", "certificate", "verify", file)
	if n := m.flags(); n != 0 {
		t.Errorf("%d flags", n)
	}
	m.parity(2, "no such file", "certificate", "verify", file+"x")
}

// A certificate that cannot be read is named, and is as good as none: its cell is certified again.
func TestCertifyGoesOnBesideOneThatCannotBeRead(t *testing.T) {
	m := newMachine(t)
	m.parity(0, "", "keys", "new", "alice")
	m.parity(0, "certified as", "certify", "fake", "--precision", "fp32,bf16")
	place := filepath.Join(m.folder, "certificates", "classify", "fake-s-8-b1-predict-fp32.dsse.json")
	elsewhere := filepath.Join(m.folder, "elsewhere")
	if err := errors.Join(os.Rename(place, elsewhere), os.Symlink(place+"x", place)); err != nil {
		t.Fatal(err)
	}
	named := "not counted: certificate: open " + place + ": no such file or directory\n1 of 2 cells are certified already\n"
	out := m.parity(0, named, "certify", "fake", "--precision", "fp32,bf16", "--resume")
	if strings.Count(out, "certified as ") != 1 || !strings.Contains(out, "certified as "+place) {
		t.Errorf("fp32 alone was to be certified again: %s", out)
	}
	m.parity(0, "2 of 2 cells are certified already", "certify", "fake", "--precision", "fp32,bf16", "--resume")
}

// What many cells lack is said once.
func TestStatusSaysAReasonOnce(t *testing.T) {
	var out strings.Builder
	flag := func(precision, why string) grant.Flag {
		return grant.Flag{Cell: certificate.Cell{Family: "fake", Size: "s", Task: "detect", ImgSize: 8, Batch: 1, Mode: "predict", Precision: precision},
			Reason: why, Why: []string{why + ": so it is"}}
	}
	(&app{out: &out}).sayFlags([]grant.Flag{flag("fp32", "NO_GPU"), flag("bf16", "OTHER_DRIVER"), flag("fp16", "NO_GPU")})
	for _, line := range []string{"\n2 cells: NO_GPU: so it is\n", "\nfake-s detect predict 8 batch 1 bf16: OTHER_DRIVER: so it is\n"} {
		if strings.Count(out.String(), line) != 1 || strings.Count(out.String(), "so it is") != 2 {
			t.Errorf("%q is not there once:\n%s", line, out.String())
		}
	}
}

// Nothing but a verification of this process makes a certificate, and nothing but a certificate a flag.
func TestNothingElseSetsTheFlag(t *testing.T) {
	m := newMachine(t)
	m.parity(0, "", "keys", "new", "alice")
	m.declare = []recording.Setting{{Key: "SUPPORTS_CUDA_GRAPH", Value: "true"}, {Key: "verdict", Value: "exact"}, {Key: "engine_build", Value: strings.Repeat("0", 64)}}
	m.faults = suitetest.Faults{Stale: true}
	results := filepath.Join(m.folder, "results")
	m.parity(1, "VERDICT_NOT_EXACT", "certify", "fake", "--results", results)
	m.faults = suitetest.Faults{}
	m.parity(2, "NOT_ON_GPU", "certify", "fake", "--device", "host")

	kept := filepath.Join(results, "classify-fake-s-8-b1-predict-fp32-cuda.json")
	data, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.NewReplacer(`"differs"`, `"exact"`, `"failed"`, `"passed"`).Replace(string(data))
	place := filepath.Join(m.folder, "certificates", "classify", "fake-s-8-b1-predict-fp32.dsse.json")
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{kept, place} {
		if err := os.WriteFile(path, []byte(edited), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m.parity(2, "RESULT_IS_NO_PROOF", "certify", kept)
	m.parity(1, "not valid", "certificate", "verify", place)
	if n := m.flags(); n != 0 {
		t.Errorf("%d flags", n)
	}

	// A certificate of somebody whom nobody here trusts.
	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	m.parity(0, "certified as", "certify", "fake")
	m.parity(0, "", "keys", "untrust", "alice")
	if n := m.flags(); n != 0 {
		t.Errorf("%d flags", n)
	}
	m.parity(2, "unknown flag", "status", "--supports-cuda-graph")
}

func TestCertificatesOfOtherPrograms(t *testing.T) {
	here := map[string]string{"parity_build": "p", "reference_build": "r"}
	for want, environment := range map[string]map[string]string{
		"":                {"parity_build": "p", "reference_build": "r", "engine_build": "e"},
		"parity_build":    {"parity_build": "q", "reference_build": "r"},
		"reference_build": {"parity_build": "p"},
	} {
		if got := otherProgram(certificate.Predicate{Environment: environment}, here); got != want {
			t.Errorf("%v: %q", environment, got)
		}
	}
}
