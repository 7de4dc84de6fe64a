package doctor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/recording"
	"samebits/parity/launch"
	"samebits/parity/suite"
)

// machine is a Backend. An error stands for what is missing or broken, by the name of the call.
type machine struct {
	lacks    map[string]error
	packages []string // that are missing
	gpu      string   // why the native engine has none
	torch    []string // devices of PyTorch
	alive    int
}

func (m *machine) Python() (string, error)    { return "/python", m.lacks["Python"] }
func (m *machine) Predictor() (string, error) { return "/predictor", m.lacks["Predictor"] }
func (m *machine) Trainer() (string, error)   { return "/trainer", m.lacks["Trainer"] }
func (m *machine) EngineBuild() (string, error) {
	return strings.Repeat("ab", 32), m.lacks["EngineBuild"]
}

func (m *machine) Inspect(context.Context) (launch.PythonInfo, error) {
	info := launch.PythonInfo{Version: "3.12.1", Packages: map[string]string{}}
	for _, name := range launch.Packages {
		if !slices.Contains(m.packages, name) {
			info.Packages[name] = "1.0"
		}
	}
	return info, m.lacks["Inspect"]
}

func (m *machine) Devices(context.Context) ([]launch.Device, error) {
	return []launch.Device{{Name: "cuda:0", Problem: m.gpu, Environment: []recording.Setting{{Key: "gpu", Value: "H200"}}},
		{Name: "host", Environment: []recording.Setting{{Key: "host.cpu", Value: "x"}}}}, m.lacks["Devices"]
}

func (m *machine) Reference(context.Context) (suite.Arm, error) {
	if err := m.lacks["Reference"]; err != nil {
		return nil, err
	}
	m.alive++
	return &reference{m: m}, nil
}

type reference struct {
	suite.Arm // what is not overridden is not called
	m         *machine
}

func (r *reference) Describe(context.Context) (arm.Description, error) {
	return arm.Description{Version: "1.2", Devices: r.m.torch, Environment: []recording.Setting{{Key: "torch", Value: "2.11"}}}, r.m.lacks["Describe"]
}

func (r *reference) Stop() { r.m.alive-- }

func TestExamine(t *testing.T) {
	no := errors.New("there is none\nlook elsewhere\n")
	both := []string{"cpu", "cuda:0"}
	for _, c := range []struct {
		name    string
		machine machine
		devices []string
		want    []string // checks that are not ok: name, state, what they prevent
	}{
		{"all is there", machine{torch: both}, []string{"cuda:0", "host"}, nil},
		{"no GPU", machine{gpu: "no driver", torch: []string{"cpu"}}, []string{"host"},
			[]string{"native device cuda:0 missing " + onGPU, "PyTorch on a GPU missing " + onGPU}},
		{"PyTorch sees no GPU", machine{torch: []string{"cpu"}}, []string{"host"}, []string{"PyTorch on a GPU missing " + onGPU}},
		{"native sees no GPU", machine{gpu: "no driver", torch: both}, []string{"host"}, []string{"native device cuda:0 missing " + onGPU}},
		{"no predictor", machine{lacks: map[string]error{"Predictor": no}, torch: both}, nil, []string{"native engine missing " + everything}},
		{"a predictor that cannot be read", machine{lacks: map[string]error{"EngineBuild": no}, torch: both}, nil, []string{"native engine broken " + everything}},
		{"a predictor that says nothing", machine{lacks: map[string]error{"Devices": no}, torch: both}, nil, []string{"native engine broken " + everything}},
		{"no trainer", machine{lacks: map[string]error{"Trainer": no}, torch: both}, []string{"cuda:0", "host"}, []string{"native trainer missing " + ofTraining}},
		{"no Python", machine{lacks: map[string]error{"Python": no}}, nil, []string{"Python missing " + everything}},
		{"a Python that does not run", machine{lacks: map[string]error{"Inspect": no}}, nil, []string{"Python broken " + everything}},
		{"no torch", machine{packages: []string{"torch"}, torch: both}, nil, []string{"package torch missing " + everything}},
		{"no timm", machine{packages: []string{"timm"}, torch: both}, []string{"cuda:0", "host"}, []string{"package timm missing families that need it"}},
		{"a plugin that does not start", machine{lacks: map[string]error{"Reference": no}}, nil, []string{"reference plugin broken " + everything}},
		{"a plugin that says nothing", machine{lacks: map[string]error{"Describe": no}}, nil, []string{"reference plugin broken " + everything}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Examine(t.Context(), &c.machine)
			var wrong []string
			for _, check := range r.Checks {
				if check.State == OK {
					if check.Prevents != "" {
						t.Errorf("%+v", check)
					}
					continue
				}
				wrong = append(wrong, check.Name+" "+string(check.State)+" "+check.Prevents)
				if c.machine.lacks != nil && !slices.Equal(check.Details, []string{"there is none", "look elsewhere"}) {
					t.Errorf("%s loses its cause: %q", check.Name, check.Details)
				}
			}
			if !slices.Equal(wrong, c.want) || !slices.Equal(r.Devices, c.devices) || r.Ready() != (len(c.devices) > 0) || r.Devices == nil {
				t.Errorf("%q, devices %q", wrong, r.Devices)
			}
			if c.machine.alive != 0 {
				t.Errorf("%d processes are left", c.machine.alive)
			}
		})
	}
}

// What was found is said with its version or path, and what it says of itself.
func TestFound(t *testing.T) {
	r := Examine(t.Context(), &machine{torch: []string{"cpu", "cuda:0"}})
	found := map[string]string{}
	for _, c := range r.Checks {
		found[c.Name] = c.Value + "|" + strings.Join(c.Details, ",")
	}
	for name, want := range map[string]string{"native engine": "/predictor, build abababababababab|", "native trainer": "/trainer|", "native device cuda:0": "|gpu: H200",
		"native device host": "|host.cpu: x", "Python": "3.12.1, /python|", "package timm": "1.0|", "reference plugin": "version 1.2|torch: 2.11",
		"PyTorch on a GPU": "cpu, cuda:0|"} {
		if found[name] != want {
			t.Errorf("%s: %q, not %q", name, found[name], want)
		}
	}
}
