// Package certificate checks certificates: in-toto statements in DSSE envelopes, signed with ed25519, that say of one cell
// that every gate passed, and in what environment. SUPPORTS_CUDA_GRAPH of a cell is what Check says of its certificate,
// and nothing else. All of it works offline, without a GPU and without Python. docs/certificates.md describes the files; package
// parity/certificate grants them.
package certificate

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"samebits/bridge/arm"
)

const (
	// StatementType and PredicateType are what a certificate's statement says of itself.
	StatementType = "https://in-toto.io/Statement/v1"
	PredicateType = "https://samebits.dev/certificate/v1"
	// Schema is the version of the predicate.
	Schema = 1
	// Extension ends the names of certificates' files.
	Extension = ".dsse.json"
	// Lifetime is how long a certificate is good for where nothing else is asked for.
	Lifetime = 365 * 24 * time.Hour
)

// The reasons for which a certificate is not valid. They are stable.
const (
	Unreadable      = "CERTIFICATE_UNREADABLE"    // no envelope, or no statement in it
	NotCanonical    = "CERTIFICATE_NOT_CANONICAL" // not written as Sign writes it
	OtherType       = "CERTIFICATE_OTHER_TYPE"    // of the payload, the statement or the predicate
	Unsigned        = "CERTIFICATE_UNSIGNED"
	BadSignature    = "SIGNATURE_INVALID"
	UnknownKey      = "KEY_UNKNOWN"
	TrustExpired    = "TRUST_EXPIRED"
	Expired         = "CERTIFICATE_EXPIRED"
	NotYet          = "CERTIFICATE_NOT_YET_VALID"
	AgainstSchema   = "CERTIFICATE_AGAINST_SCHEMA"
	Contradictory   = "CERTIFICATE_CONTRADICTORY" // its parts do not agree
	GateNotPassed   = "GATE_NOT_PASSED"
	EnvironmentLess = "ENVIRONMENT_UNKNOWN" // what the certificate is bound to is not known here
	NoGPU           = "NO_GPU"
	OtherGPU        = "OTHER_GPU"
	OtherDriver     = "OTHER_DRIVER"
	OtherCUDA       = "OTHER_CUDA"
	OtherCUDNN      = "OTHER_CUDNN"
	OtherCUBLAS     = "OTHER_CUBLAS"
	OtherNVRTC      = "OTHER_NVRTC"
	OtherTorch      = "OTHER_TORCH"
	OtherEngine     = "OTHER_ENGINE"
	OtherRecording  = "OTHER_RECORDING"
	OtherProfile    = "OTHER_PROFILE"
	None            = "NO_CERTIFICATE" // of a cell: there is none
)

// The reasons for which a key is not taken.
const (
	KeyMissing   = "KEY_MISSING"
	KeyExposed   = "KEY_EXPOSED"
	KeyInvalid   = "KEY_INVALID"
	KeyThere     = "KEY_EXISTS"
	TrustInvalid = "TRUST_INVALID"
)

// Statement is what is signed.
type Statement struct {
	Type          string    `json:"_type"`
	Subject       []Subject `json:"subject"`
	PredicateType string    `json:"predicateType"`
	Predicate     Predicate `json:"predicate"`
}

// The subjects of a certificate.
const (
	RecordingSubject = "recording" // the file recording.pb
	EngineSubject    = "engine"    // the native plugin's program
	GoldensSubject   = "goldens"   // the list that Goldens writes
)

// Subject is a file with its digests.
type Subject struct {
	Name   string            `json:"name"`
	Digest map[string]string `json:"digest"` // sha256, blake3
}

// Cell names what is certified.
type Cell struct {
	Family    string `json:"family"`
	Size      string `json:"size"`
	Task      string `json:"task"`
	ImgSize   int64  `json:"imgsz"`
	Batch     int64  `json:"batch"`
	Mode      string `json:"mode"`
	Precision string `json:"precision"`
}

func (c Cell) String() string {
	return fmt.Sprintf("%s-%s %s %s %d batch %d %s", c.Family, c.Size, c.Task, c.Mode, c.ImgSize, c.Batch, c.Precision)
}

// Predicate is what a certificate says.
type Predicate struct {
	Schema      int                `json:"schema"`
	Cell        Cell               `json:"cell"`
	Arm         string             `json:"arm"`  // the one that may replay
	Arms        []string           `json:"arms"` // all that gave the same bits
	Profile     string             `json:"profile"`
	Key         Key                `json:"environment_key"`
	Environment map[string]string  `json:"environment"` // all that was said of it
	Gates       map[GateID]Finding `json:"gates"`
	Digests     Digests            `json:"digests"`
	Replays     map[string]Replays `json:"replays"` // by graph arm
	Timings     map[string]Timing  `json:"timings"`
	Probes      []Probe            `json:"probes"`
	Plan        Plan               `json:"plan"`
	Training    json.RawMessage    `json:"training,omitempty"` // what a training run was made of, as results have it
	Seam        *Cut               `json:"seam,omitempty"`
	Reproduce   string             `json:"reproduce"`
	Created     time.Time          `json:"created"`
	Expires     time.Time          `json:"expires"`
}

// Replays counts what a graph arm did.
type Replays struct {
	Captures int64 `json:"captures"`
	Replays  int64 `json:"replays"`
	Launches int64 `json:"launches"`
	Nodes    int64 `json:"nodes"`
}

// Probe is an input that the arms were given; package probe makes it of its name and seed.
type Probe struct {
	Name string `json:"name"`
	Seed uint64 `json:"seed"`
}

// Plan says how the native engine planned.
type Plan struct {
	// Options are the off switches that were set. A verification sets none: every optimisation is on.
	Options map[string]string `json:"options"`
}

// arms are all that must have given the same bits.
var arms = []string{arm.ReferenceEager, arm.ReferenceGraph, arm.NativeEager, arm.NativeGraph}

// File is the path of a certificate below the folder of certificates, with slashes.
func (p Predicate) File() string {
	c := p.Cell
	name := fmt.Sprintf("%s-%s-%d-b%d-%s-%s", c.Family, c.Size, c.ImgSize, c.Batch, c.Mode, c.Precision)
	if seed := p.Seed(); seed != 0 {
		name += fmt.Sprintf("-s%d", seed)
	}
	if p.Profile != "exact-1" {
		name += "-" + p.Profile
	}
	// Names come from plugins, and are no way out of the folder.
	clean := func(s string) string { return strings.NewReplacer("/", "_", "\\", "_", "..", "_").Replace(s) }
	return path.Join(clean(c.Task), clean(name)+Extension)
}

// Seed is that of weights and probes.
func (p Predicate) Seed() uint64 {
	if len(p.Probes) == 0 {
		return 0
	}
	return p.Probes[0].Seed
}
