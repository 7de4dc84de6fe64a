package certificate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/parity/gate"
	"samebits/parity/result"
)

// Evidence is what a verification leaves beside its result.
type Evidence struct {
	Recording []byte // the file
	Engine    []byte // the native plugin's program, as it is after the verification
}

// Grant makes the statement for a result that was just made, or says why there can be none. Only its caller can know that
// the result is the suite's own: parity certify verifies itself, in the same process.
func Grant(r result.Result, e Evidence, created time.Time, lifetime time.Duration) (certificate.Statement, error) {
	var ps diag.Problems
	if r.Verdict != result.Exact {
		ps.Add(NotExact, "verdict", "%s is %s%s: %s; only what is exact can be certified", r.Family, r.Verdict, reasonOf(r), r.Summary)
	}
	if !strings.HasPrefix(r.Device, "cuda:") {
		ps.Add(NotOnGPU, "device", "on the device %s no certificate can be granted; only a GPU can prove a cell exact", r.Device)
	}
	if lifetime <= 0 || lifetime > 10*certificate.Lifetime {
		ps.Add(BadLifetime, "", "a certificate is good for more than nothing and at most ten years, not %v", lifetime)
	}
	if len(ps) > 0 {
		return certificate.Statement{}, ps
	}
	key := certificate.KeyOf(r.Environment, r.Digests.Recording)
	if missing := key.Missing(); len(missing) > 0 {
		ps.Add(Incomplete, "environment", "nobody says %s", strings.Join(missing, ", "))
	}
	if names := certificate.Apart(r.Environment); len(names) > 0 {
		ps.Add(SidesDiffer, "environment", "the native engine and PyTorch do not agree on %s", strings.Join(names, ", "))
	}
	for _, file := range []struct {
		what, want string
		data       []byte
	}{{"the recording", r.Digests.Recording, e.Recording}, {"the engine's program", r.Environment[certificate.EngineKey], e.Engine}} {
		if digest.Bytes(file.data) != file.want {
			ps.Add(OtherFile, "", "%s is not the one that was verified", file.what)
		}
	}
	if len(ps) > 0 {
		return certificate.Statement{}, ps
	}
	training, err := trainingOf(r)
	if err != nil {
		return certificate.Statement{}, err
	}
	created = created.UTC().Truncate(time.Second)
	s := certificate.Statement{Type: certificate.StatementType, PredicateType: certificate.PredicateType,
		Subject: []certificate.Subject{certificate.SubjectOf(certificate.RecordingSubject, e.Recording), certificate.SubjectOf(certificate.EngineSubject, e.Engine), certificate.SubjectOf(certificate.GoldensSubject, certificate.Goldens(r.Digests))},
		Predicate: certificate.Predicate{Schema: certificate.Schema,
			Cell: certificate.Cell{Family: r.Family, Size: r.Size, Task: r.Task, ImgSize: r.ImgSize, Batch: r.Batch, Mode: r.Mode, Precision: r.Precision},
			Arm:  arm.NativeGraph, Arms: r.Arms, Profile: r.Profile, Key: key, Environment: r.Environment, Gates: r.Gates, Digests: r.Digests,
			Replays: replaysOf(r.Gates[gate.Engaged]), Timings: r.Timings, Probes: probesOf(r), Plan: certificate.Plan{Options: map[string]string{}},
			Training: training, Seam: r.Seam, Reproduce: r.Reproduce, Created: created, Expires: created.Add(lifetime)}}
	ps = s.Contradictions()
	return s, ps.Err()
}

// trainingOf writes what a training run was made of.
func trainingOf(r result.Result) (json.RawMessage, error) {
	if r.Training == nil {
		return nil, nil
	}
	return json.Marshal(r.Training)
}

func reasonOf(r result.Result) string {
	if r.Reason == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", r.Reason)
}

func replaysOf(engaged gate.Finding) map[string]certificate.Replays {
	counts := map[string]certificate.Replays{}
	for name, f := range engaged.Arms {
		if is, ok := f.Figures.(gate.EngagedFigures); ok {
			counts[name] = certificate.Replays{Captures: is.Captures, Replays: is.Replays, Launches: is.Launches, Nodes: is.Nodes}
		}
	}
	return counts
}

func probesOf(r result.Result) []certificate.Probe {
	probes := []certificate.Probe{}
	for _, name := range slices.Sorted(maps.Keys(r.Digests.Inputs)) {
		probes = append(probes, certificate.Probe{Name: name, Seed: r.Seed})
	}
	return probes
}
