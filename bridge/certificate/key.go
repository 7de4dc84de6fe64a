package certificate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"samebits/bridge/diag"
)

// Key is what a certificate is bound to, by the names that results have for it; all else of an environment may change.
type Key map[string]string

// Parts of a key that are digests of files.
const (
	EngineKey    = "engine_build"
	RecordingKey = "recording"
)

// keyParts are the parts of a key, with the reasons for which another value is not the same environment.
var keyParts = []struct{ name, reason string }{
	{"gpu", OtherGPU}, {"gpu.arch", OtherGPU}, {"gpu.sms", OtherGPU}, {"driver", OtherDriver}, {"cuda", OtherCUDA},
	{"cudnn", OtherCUDNN}, {"cublas", OtherCUBLAS}, {"cublaslt", OtherCUBLAS}, {"nvrtc", OtherNVRTC},
	{"torch", OtherTorch}, {"torch_revision", OtherTorch}, {EngineKey, OtherEngine}, {RecordingKey, OtherRecording},
}

// KeyOf takes the key out of an environment as results have it. Of what the native engine sees in another way than PyTorch
// it is the engine's. What nobody says is left out.
func KeyOf(environment map[string]string, recording string) Key {
	k := Key{}
	for _, part := range keyParts {
		value := environment[part.name]
		if part.name != EngineKey { // the suite's own, which no plugin may say
			value = cmp.Or(environment["native."+part.name], value)
		}
		if part.name == RecordingKey {
			value = recording
		}
		if value = strings.TrimSpace(value); value != "" && !strings.HasPrefix(value, "unknown") {
			k[part.name] = value
		}
	}
	return k
}

// Missing lists the parts that a key lacks.
func (k Key) Missing() []string {
	var names []string
	for _, part := range keyParts {
		if k[part.name] == "" {
			names = append(names, part.name)
		}
	}
	return names
}

// WithoutRecording is the part of a key that is the machine's and the programs'.
func (k Key) WithoutRecording() Key {
	rest := maps.Clone(k)
	delete(rest, RecordingKey)
	return rest
}

// Text gives the key as one line.
func (k Key) Text() string {
	var words []string
	for _, part := range keyParts {
		if value := k[part.name]; value != "" {
			words = append(words, part.name+" "+Short(value))
		}
	}
	return strings.Join(words, ", ")
}

// Here is the environment at hand.
type Here struct {
	Key     Key
	Profile string
	// Trainer is the digest of the engine's program for training, where Key has the other one's. It may be empty.
	Trainer string
	// Problem says why there is no GPU; empty: there is one.
	Problem string
}

// differences lists all that is not as the certificate has it. A recording is compared where one is at hand: before a
// model is built there is none.
func (h Here) differences(p Predicate) diag.Problems {
	var ps diag.Problems
	if h.Profile != p.Profile {
		ps.Add(OtherProfile, "predicate.profile", "it is for profile %s, not %s", p.Profile, h.Profile)
	}
	if h.Problem != "" {
		ps.Add(NoGPU, "", "there is no GPU here: %s", h.Problem)
		return ps
	}
	for _, part := range keyParts {
		want, have := p.Key[part.name], h.Key[part.name]
		if part.name == EngineKey && p.Cell.Mode == "train" && h.Trainer != "" {
			have = h.Trainer
		}
		switch at := "predicate.environment_key." + part.name; {
		case have == want:
		case have == "" && part.name == RecordingKey:
		case have == "":
			ps.Add(EnvironmentLess, at, "it is for %s %s; what is here is not known", part.name, Short(want))
		default:
			ps.Add(part.reason, at, "it is for %s %s, not %s", part.name, Short(want), Short(have))
		}
	}
	return ps
}

// Short cuts digests.
func Short(value string) string {
	if len(value) == 64 && strings.Trim(value, "0123456789abcdef") == "" {
		return value[:16]
	}
	return value
}

// Apart lists the libraries that the native engine and PyTorch do not share in an environment. CUDA's own version is the driver's
// to one and the toolkit's to the other.
func Apart(environment map[string]string) []string {
	var names []string
	for _, part := range keyParts {
		if native := environment["native."+part.name]; native != "" && environment[part.name] != native && part.name != "cuda" {
			names = append(names, part.name)
		}
	}
	slices.Sort(names)
	return names
}
