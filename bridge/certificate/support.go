package certificate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
)

// Asked is a cell in the environment in which its graph would be replayed.
type Asked struct {
	Cell      Cell
	Profile   string
	Recording string // digest of the recording at hand
	Device    string // cuda:0, host
	// Environment is what the device says of itself, with torch, torch_revision and engine_build.
	Environment map[string]string
}

// Support is SUPPORTS_CUDA_GRAPH of a cell, here. Decide alone makes it true.
type Support struct {
	cell      Cell
	supported bool
	file      string
	expires   time.Time
	problems  diag.Problems
}

// hopeless says why no certificate whatever can be for what is asked; nothing if one may be.
func (a *Asked) hopeless() diag.Problems {
	switch {
	case !strings.HasPrefix(a.Device, "cuda:"):
		return diag.Problems{{Reason: NoGPU, Summary: fmt.Sprintf("on the device %s there are no CUDA graphs, and nothing is certified", a.Device)}}
	case a.Recording == "":
		return diag.Problems{{Reason: EnvironmentLess, Summary: "there is no recording at hand"}}
	}
	return nil
}

// Decide looks for a certificate of a cell that verifies and that is for the environment at hand. If there is none, it keeps what
// is wrong with the one that comes nearest.
func Decide(a Asked, files []File, trust Trust, now time.Time) Support {
	s := Support{cell: a.Cell, problems: a.hopeless()}
	if len(s.problems) > 0 {
		return s
	}
	q := Question{Now: now, Trust: trust, Here: &Here{Key: KeyOf(a.Environment, a.Recording), Profile: a.Profile}}
	for _, file := range files {
		if !mayBe(file.Data, a) {
			continue
		}
		c, err := Check(file.Data, q)
		if err == nil {
			return Support{cell: a.Cell, supported: true, file: file.Path, expires: c.Predicate.Expires}
		}
		problems, _ := diag.Of(err)
		if c != nil && len(problems) > 0 { // it is somebody's whom we know
			if s.file == "" || len(problems) < len(s.problems) {
				s.file, s.problems = file.Path, problems
			}
		} else if s.file == "" && len(s.problems) == 0 {
			s.problems = problems
		}
	}
	if len(s.problems) == 0 {
		s.problems = diag.Problems{{Reason: None, Summary: "nobody certified it"}}
	}
	return s
}

// mayBe reports whether a file is worth to be checked: it says that it is of this cell or recording, or cannot be read.
func mayBe(data []byte, a Asked) bool {
	var e Envelope
	if json.Unmarshal(data, &e) != nil {
		return true
	}
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		return true
	}
	var s struct {
		Predicate struct {
			Cell Cell `json:"cell"`
			Key  Key  `json:"environment_key"`
		} `json:"predicate"`
	}
	if json.Unmarshal(payload, &s) != nil {
		return true
	}
	return s.Predicate.Cell == a.Cell || s.Predicate.Key[RecordingKey] == a.Recording
}

// Supported is the flag.
func (s Support) Supported() bool { return s.supported }

// Problems says why it is false.
func (s Support) Problems() diag.Problems { return s.problems }

// File is the certificate that made it true, or comes nearest; it may be empty.
func (s Support) File() string { return s.file }

// Expires is until when it is true.
func (s Support) Expires() time.Time { return s.expires }

// Err is nil if the flag is true. Else it is arm.ErrUnimplemented with the cell and all reasons, as one that asks for a graph gets it.
func (s Support) Err() error {
	if s.supported {
		return nil
	}
	problems := make(diag.Problems, len(s.problems))
	for i, p := range s.problems {
		p.Summary = fmt.Sprintf("%s has no SUPPORTS_CUDA_GRAPH here: %s", s.cell, p.Summary)
		if p.Detail == "" && i == 0 {
			p.Detail = "cuda_graph auto or false runs it eagerly; parity certify certifies it on a GPU"
		}
		problems[i] = p
	}
	return &uncertified{problems}
}

// uncertified is arm.ErrUnimplemented with the reasons, in their words alone.
type uncertified struct{ problems diag.Problems }

func (u *uncertified) Error() string   { return u.problems.Error() }
func (u *uncertified) Unwrap() []error { return []error{arm.ErrUnimplemented, u.problems} }

// Line is Err for a log: one line.
func (s Support) Line() string {
	if s.supported {
		return ""
	}
	p := s.problems[0]
	return fmt.Sprintf("%s runs eagerly, it has no SUPPORTS_CUDA_GRAPH here: %s: %s", s.cell, p.Reason, p.Summary)
}

// BuildOf is the digest of a native plugin's program, as environments have it under engine_build.
func BuildOf(program string) (string, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return "", fmt.Errorf("digest of the native engine: %w", err)
	}
	return digest.Bytes(data), nil
}

// Ask decides by the certificates of path, or those of Find without one, and by whom this user trusts. What cannot be read sets no
// flag.
func Ask(a Asked, path string) Support {
	refused := func(err error) Support {
		problems, ok := diag.Of(err)
		if !ok {
			problems = diag.Problems{{Reason: Unreadable, Path: path, Summary: err.Error()}}
		}
		return Support{cell: a.Cell, problems: problems}
	}
	if problems := a.hopeless(); len(problems) > 0 { // then there is no need to read any
		return Support{cell: a.Cell, problems: problems}
	}
	files, err := Find(path)
	if err != nil {
		return refused(err)
	}
	trust, err := Trusting()
	if err != nil {
		return refused(err)
	}
	return Decide(a, files, trust, time.Now())
}
