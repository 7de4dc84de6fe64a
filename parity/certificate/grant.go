package certificate

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"samebits/bridge/arm"
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
func Grant(r result.Result, e Evidence, created time.Time, lifetime time.Duration) (Statement, error) {
	var ps diag.Problems
	if r.Verdict != result.Exact {
		ps.Add(NotExact, "verdict", "%s is %s%s: %s; only what is exact can be certified", r.Family, r.Verdict, reasonOf(r), r.Summary)
	}
	if !strings.HasPrefix(r.Device, "cuda:") {
		ps.Add(NotOnGPU, "device", "on the device %s no certificate can be granted; only a GPU can prove a cell exact", r.Device)
	}
	if lifetime <= 0 || lifetime > 10*Lifetime {
		ps.Add(BadLifetime, "", "a certificate is good for more than nothing and at most ten years, not %v", lifetime)
	}
	if len(ps) > 0 {
		return Statement{}, ps
	}
	key := KeyOf(r.Environment, r.Digests.Recording)
	if missing := key.missing(); len(missing) > 0 {
		ps.Add(Incomplete, "environment", "nobody says %s", strings.Join(missing, ", "))
	}
	if names := sides(r.Environment); len(names) > 0 {
		ps.Add(SidesDiffer, "environment", "the native engine and PyTorch do not agree on %s", strings.Join(names, ", "))
	}
	for _, file := range []struct {
		what, want string
		data       []byte
	}{{"the recording", r.Digests.Recording, e.Recording}, {"the engine's program", r.Environment[engineKey], e.Engine}} {
		if digest.Bytes(file.data) != file.want {
			ps.Add(OtherFile, "", "%s is not the one that was verified", file.what)
		}
	}
	if len(ps) > 0 {
		return Statement{}, ps
	}
	created = created.UTC().Truncate(time.Second)
	s := Statement{Type: StatementType, PredicateType: PredicateType,
		Subject: []Subject{subject(RecordingSubject, e.Recording), subject(EngineSubject, e.Engine), subject(GoldensSubject, Goldens(r.Digests))},
		Predicate: Predicate{Schema: Schema,
			Cell: Cell{Family: r.Family, Size: r.Size, Task: r.Task, ImgSize: r.ImgSize, Batch: r.Batch, Mode: r.Mode, Precision: r.Precision},
			Arm:  arm.NativeGraph, Arms: r.Arms, Profile: r.Profile, Key: key, Environment: r.Environment, Gates: r.Gates, Digests: r.Digests,
			Replays: replaysOf(r.Gates[gate.Engaged]), Timings: r.Timings, Probes: probesOf(r), Plan: Plan{Options: map[string]string{}},
			Training: r.Training, Seam: r.Seam, Reproduce: r.Reproduce, Created: created, Expires: created.Add(lifetime)}}
	ps = s.contradictions()
	return s, ps.Err()
}

func reasonOf(r result.Result) string {
	if r.Reason == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", r.Reason)
}

func subject(name string, data []byte) Subject {
	sum := sha256.Sum256(data)
	return Subject{Name: name, Digest: map[string]string{"sha256": hex.EncodeToString(sum[:]), "blake3": digest.Bytes(data)}}
}

// Goldens is the list of what all arms gave, a line each: digest, two spaces, ARM/PROBE/OUTPUT, in the order of these names; of a training run
// also ARM/step N. It is the file that the subject goldens names.
func Goldens(d result.Digests) []byte {
	var lines []string
	for arm, probes := range d.Outputs {
		for probe, outputs := range probes {
			for output, sum := range outputs {
				lines = append(lines, fmt.Sprintf("%s/%s/%s\x00%s", arm, probe, output, sum))
			}
		}
	}
	for arm, steps := range d.Steps {
		for i, sum := range steps {
			lines = append(lines, fmt.Sprintf("%s/step %06d\x00%s", arm, i+1, sum))
		}
	}
	slices.Sort(lines)
	var b strings.Builder
	for _, line := range lines {
		name, sum, _ := strings.Cut(line, "\x00")
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	return []byte(b.String())
}

func replaysOf(engaged gate.Finding) map[string]Replays {
	counts := map[string]Replays{}
	for name, f := range engaged.Arms {
		if is, ok := f.Figures.(gate.EngagedFigures); ok {
			counts[name] = Replays{Captures: is.Captures, Replays: is.Replays, Launches: is.Launches, Nodes: is.Nodes}
		}
	}
	return counts
}

func probesOf(r result.Result) []Probe {
	probes := []Probe{}
	for _, name := range slices.Sorted(maps.Keys(r.Digests.Inputs)) {
		probes = append(probes, Probe{Name: name, Seed: r.Seed})
	}
	return probes
}

// Sign gives the file of a certificate.
func (s Statement) Sign(key ed25519.PrivateKey) ([]byte, error) {
	payload, err := marshalCanonical(s)
	if err != nil {
		return nil, fmt.Errorf("write certificate: %w", err)
	}
	return seal(payload, key)
}
