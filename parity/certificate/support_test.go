package certificate_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"samebits/bridge/certificate"
	"samebits/bridge/recording"
	"samebits/parity/gate"
	"samebits/parity/suite/suitetest"
)

// asked is what a program asks that wants to replay the cell of a certificate, where it was made.
func asked(s certificate.Statement) certificate.Asked {
	environment := maps.Clone(map[string]string(s.Predicate.Key))
	delete(environment, "recording")
	return certificate.Asked{Cell: s.Predicate.Cell, Profile: s.Predicate.Profile, Recording: s.Predicate.Key["recording"], Device: "cuda:0", Environment: environment}
}

// The flag that programs go by is true if and only if a certificate verifies for the environment at hand. Whatever else is
// tried leaves it false, with the reason.
func TestNothingElseSetsTheFlag(t *testing.T) {
	for _, mode := range []string{gate.Predict, gate.Train} {
		s := granted(t, mode)
		file, now := signed(t, s), made.Add(time.Hour)
		if got := certificate.Decide(asked(s), []certificate.File{{Path: "x", Data: file}}, trust(), now); !got.Supported() || got.Err() != nil || got.File() != "x" {
			t.Fatalf("%s: a certificate does not set the flag: %v", mode, got.Err())
		}
		edited := bytes.Replace(file, []byte(`"payload":"`), []byte(`"payload":"A`), 1)
		environment := func(name, value string) func(*certificate.Asked) {
			return func(a *certificate.Asked) { a.Environment[name] = value }
		}
		for _, c := range []struct {
			name   string
			files  [][]byte
			change func(*certificate.Asked)
			want   string
		}{
			{"no certificate", nil, nil, certificate.None},
			{"an edited one", [][]byte{edited}, nil, ""},
			{"one that is cut short", [][]byte{file[:len(file)/2]}, nil, certificate.Unreadable},
			{"another engine", [][]byte{file}, environment("engine_build", strings.Repeat("0", 64)), certificate.OtherEngine},
			{"an engine that nobody knows", [][]byte{file}, environment("engine_build", ""), certificate.EnvironmentLess},
			{"another driver", [][]byte{file}, environment("driver", "1"), certificate.OtherDriver},
			{"another GPU", [][]byte{file}, environment("gpu", "NVIDIA B200"), certificate.OtherGPU},
			{"another PyTorch", [][]byte{file}, environment("torch", "2.12.0"), certificate.OtherTorch},
			{"another profile", [][]byte{file}, func(a *certificate.Asked) { a.Profile = "exact-2" }, certificate.OtherProfile},
			{"another recording of the cell", [][]byte{file}, func(a *certificate.Asked) { a.Recording = strings.Repeat("1", 64) }, certificate.OtherRecording},
			{"no recording", [][]byte{file}, func(a *certificate.Asked) { a.Recording = "" }, certificate.EnvironmentLess},
			{"the host", [][]byte{file}, func(a *certificate.Asked) { a.Device = "host" }, certificate.NoGPU},
			{"another cell", [][]byte{file}, func(a *certificate.Asked) { a.Cell.Family, a.Recording = "other", strings.Repeat("1", 64) }, certificate.None},
			{"a plugin that declares it", nil, environment("SUPPORTS_CUDA_GRAPH", "true"), certificate.None},
		} {
			a := asked(s)
			if c.change != nil {
				c.change(&a)
			}
			var files []certificate.File
			for _, data := range c.files {
				files = append(files, certificate.File{Path: "x", Data: data})
			}
			got := certificate.Decide(a, files, trust(), now)
			reason := ""
			if ps := got.Problems(); len(ps) > 0 {
				reason = ps[0].Reason
			}
			if got.Supported() || got.Err() == nil || reason == "" || c.want != "" && reason != c.want {
				t.Errorf("%s, %s: supported %t, %v", mode, c.name, got.Supported(), got.Err())
			}
			if !strings.Contains(got.Err().Error(), a.Cell.Family) || strings.Contains(got.Line(), "\n") {
				t.Errorf("%s, %s: %v, %q", mode, c.name, got.Err(), got.Line())
			}
		}
		for name, when := range map[string]time.Time{certificate.Expired: made.Add(2 * certificate.Lifetime), certificate.NotYet: made.Add(-time.Hour)} {
			if got := certificate.Decide(asked(s), []certificate.File{{Data: file}}, trust(), when); got.Supported() || !strings.Contains(got.Err().Error(), name) {
				t.Errorf("%s: %v", name, got.Err())
			}
		}
		if got := certificate.Decide(asked(s), []certificate.File{{Data: file}}, nil, now); got.Supported() || !strings.Contains(got.Err().Error(), certificate.UnknownKey) {
			t.Errorf("without trust: %v", got.Err())
		}
	}
}

// A good certificate counts beside bad ones, whatever their order.
func TestOneGoodCertificateIsEnough(t *testing.T) {
	s := granted(t, gate.Predict)
	good := certificate.File{Path: "good", Data: signed(t, s)}
	bad := []certificate.File{{Data: []byte("{}")}, {Data: good.Data[:90]}, {Data: signed(t, granted(t, gate.Train))}}
	for _, files := range [][]certificate.File{append(slices.Clone(bad), good), append([]certificate.File{good}, bad...)} {
		if got := certificate.Decide(asked(s), files, trust(), made.Add(time.Hour)); got.File() != "good" {
			t.Errorf("%v", got.Err())
		}
	}
}

// Variables of the environment say where certificates and trusted keys are, and nothing more.
func TestVariablesSetNoFlag(t *testing.T) {
	s := granted(t, gate.Predict)
	folder, keys := t.TempDir(), t.TempDir()
	t.Setenv(certificate.FolderVariable, keys)
	for _, name := range []string{"SUPPORTS_CUDA_GRAPH", "SAMEBITS_SUPPORTS_CUDA_GRAPH", "SAMEBITS_CUDA_GRAPH", "SAMEBITS_ENGINE_BUILD", "SAMEBITS_FORCE"} {
		t.Setenv(name, "true")
	}
	result := filepath.Join(folder, "x"+certificate.Extension) // what a plugin says of itself in a result
	r, _ := verified(t, gate.Predict, "cuda:0", suitetest.Faults{}, recording.Setting{Key: "SUPPORTS_CUDA_GRAPH", Value: "true"})
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(result, text, 0o644); err != nil {
		t.Fatal(err)
	}
	ask := func(path string) []string {
		got := certificate.Ask(asked(s), path)
		if got.Supported() {
			t.Error("the flag is true")
		}
		return reasons(t, got.Problems().Err())
	}
	ask("")
	ask(result)
	ask(folder)
	t.Setenv(certificate.Variable, folder)
	ask("")
	if got := ask(filepath.Join(folder, "none")); !slices.Equal(got, []string{"CERTIFICATES_MISSING"}) {
		t.Errorf("%v", got)
	}
	if err := os.WriteFile(filepath.Join(folder, "good"+certificate.Extension), signed(t, s), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := ask(""); !slices.Contains(got, certificate.UnknownKey) && !slices.Contains(got, certificate.Unreadable) {
		t.Errorf("nobody trusts its key: %v", got)
	}
	if err := os.WriteFile(filepath.Join(keys, "trusted.json"), []byte(`{"schema":1,"keys":[{"name":"alice"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ask("")
	// Trust by the user's own list, and nothing less, makes it true: the certificate was made a moment ago.
	if err := os.Remove(filepath.Join(keys, "trusted.json")); err != nil {
		t.Fatal(err)
	}
	ring := certificate.Keyring{Folder: keys}
	if err := ring.Add(certificate.Trusted{Name: "alice", Public: certificate.Public(key), NotAfter: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	s.Predicate.Created = time.Now().UTC().Truncate(time.Second)
	s.Predicate.Expires = s.Predicate.Created.Add(time.Hour)
	if err := os.WriteFile(filepath.Join(folder, "good"+certificate.Extension), signed(t, s), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", folder, filepath.Join(folder, "good"+certificate.Extension)} {
		if got := certificate.Ask(asked(s), path); !got.Supported() {
			t.Errorf("%q: %v", path, got.Err())
		}
	}
}

// Every gate of a mode is required.
func TestEveryGateIsRequired(t *testing.T) {
	for _, mode := range []string{gate.Predict, gate.Train} {
		for _, id := range gate.Order(mode) {
			s := granted(t, mode)
			delete(s.Predicate.Gates, id)
			if _, err := certificate.Check(signed(t, s), question(s)); err == nil {
				t.Errorf("%s: valid without %s", mode, id)
			}
		}
	}
}
