package verifypage

import (
	"bytes"
	"crypto/ed25519"
	"slices"
	"testing"
	"time"

	"samebits/bridge/certificate"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	grant "samebits/parity/certificate"
	"samebits/parity/gate"
	"samebits/parity/result"
	"samebits/parity/suite"
	"samebits/parity/suite/suitetest"
)

// A flag is that of a certificate which somebody trusted signed, for just this cell, environment and recording.
func TestFlags(t *testing.T) {
	engine, made := []byte("an engine's program"), time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	starter := &suitetest.Starter{}
	for name, value := range map[string]string{"gpu": "NVIDIA H200", "gpu.arch": "sm_90", "gpu.sms": "132", "driver": "580.159.04", "cuda": "13.0",
		"cublas": "13.1.0", "cublaslt": "13.1.0", "nvrtc": "13.0", "torch": "2.11.0+cu130", "torch_revision": "70d99e998b49"} {
		starter.Environment = append(starter.Environment, recording.Setting{Key: name, Value: value})
	}
	evidence := grant.Evidence{Engine: engine}
	s := &suite.Suite{Start: starter, Timing: suite.DefaultTiming(), EngineBuild: digest.Bytes(engine), OnRecording: func(file []byte) { evidence.Recording = file }}
	r := s.Verify(t.Context(), suite.Cell{Family: "fake", Precision: "fp32", Profile: "exact-1", Device: "cuda:0", Mode: gate.Predict, Batch: 1})
	statement, err := grant.Grant(r, evidence, made, certificate.Lifetime)
	if err != nil {
		t.Fatal(err)
	}
	data, err := statement.Sign(key)
	if err != nil {
		t.Fatal(err)
	}
	trust := certificate.Trust{{Name: "alice", Public: certificate.Public(key), NotAfter: made.Add(1000 * time.Hour)}}
	for _, c := range []struct {
		name   string
		file   []byte
		trust  certificate.Trust
		change func(r *result.Result)
		has    bool
	}{
		{"all is as it was", data, trust, func(*result.Result) {}, true},
		{"nobody trusts who signed", data, nil, func(*result.Result) {}, false},
		{"it is torn", data[:len(data)-9], trust, func(*result.Result) {}, false},
		{"another batch", data, trust, func(r *result.Result) { r.Batch++ }, false},
		{"another recording", data, trust, func(r *result.Result) { r.Digests.Recording = digest.Bytes(nil) }, false},
		{"another driver", data, trust, func(r *result.Result) { r.Environment["driver"] = "590" }, false},
		{"another profile", data, trust, func(r *result.Result) { r.Profile = "exact-1d" }, false},
	} {
		changed := r
		changed.Environment = map[string]string{}
		for k, v := range r.Environment {
			changed.Environment[k] = v
		}
		c.change(&changed)
		f := Flags([]certificate.File{{Data: c.file}}, c.trust)(changed)
		if (f != nil) != c.has {
			t.Errorf("%s: %+v", c.name, f)
		}
		if c.has && (f.Until != statement.Predicate.Expires.UTC().Format(time.DateOnly) || !slices.Equal(f.Signers, []string{"alice"})) {
			t.Errorf("%+v", f)
		}
	}
}
