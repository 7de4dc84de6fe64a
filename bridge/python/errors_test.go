package samebits

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"samebits/bridge/diag"
)

// apart is fail's text, taken apart as samebits/_errors.py does.
func apart(t *testing.T, err error) (code, message string, problems []problem, errno int) {
	t.Helper()
	code, text, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		t.Fatalf("%q has no code", err)
	}
	var content struct {
		Message  string
		Problems []problem
		Errno    int
	}
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return code, content.Message, content.Problems, content.Errno
}

func TestErrorsHaveACode(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		code string
	}{
		{"without a code", errors.New("x"), codeInternal},
		{"with one", as(codeDevice, errors.New("x")), codeDevice},
		{"the first code counts", as(codeDevice, fmt.Errorf("load: %w", as(codeWeights, errors.New("x")))), codeWeights},
		{"a reason that says more", as(codeDevice, diag.New("OUT_OF_MEMORY", "host", "x")), codeMemory},
		{"a reason behind others", as(codeDevice, errors.Join(errors.New("x"), diag.New("UNKNOWN_OPERATION", "", "x"))), codeUnsupported},
		{"a recording of another PyTorch", as(codeDevice, diag.New("OTHER_TORCH", "header/environment/torch", "x")), codeUnsupported},
		{"a reason that says nothing more", as(codeRecording, diag.New("TORN_RECORDING", "", "x")), codeRecording},
	} {
		t.Run(c.name, func(t *testing.T) {
			if code, _, _, _ := apart(t, fail(c.err)); code != c.code {
				t.Errorf("code %s, want %s", code, c.code)
			}
		})
	}
	if as(codeDevice, nil) != nil || fail(nil) != nil {
		t.Error("no error became one")
	}
}

func TestErrorsSurviveAsCStrings(t *testing.T) {
	problems := diag.Problems{{Reason: "A", Summary: "one\x00two", Detail: "\xff", Path: "weights/x"}, {Reason: "B", Summary: "line\nbreak"}}
	text := fail(as(codeWeights, problems)).Error()
	if strings.ContainsAny(text, "\x00\n") {
		t.Errorf("%q cannot travel", text)
	}
	_, message, found, _ := apart(t, errors.New(text))
	if len(found) != 2 || found[0].Reason != "A" || found[0].Summary != "one\x00two" || found[0].Path != "weights/x" || found[1].Summary != "line\nbreak" {
		t.Errorf("problems %+v", found)
	}
	if !strings.Contains(message, "2 problems") {
		t.Errorf("message %q", message)
	}
}

func TestErrorsOfTheSystemKeepTheirNumber(t *testing.T) {
	_, _, _, errno := apart(t, fail(as(codeFile, fmt.Errorf("write: %w", syscall.ENOSPC))))
	if errno != int(syscall.ENOSPC) {
		t.Errorf("errno %d, want %d", errno, syscall.ENOSPC)
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	call := func() (err error) {
		defer finish(&err)
		panic("on purpose")
	}
	if code, message, _, _ := apart(t, call()); code != codeInternal || !strings.Contains(message, "on purpose") {
		t.Errorf("%s: %s", code, message)
	}
	_, err := run(-1, func(*job) (string, error) { panic("in a job") })
	if err == nil || !strings.Contains(err.Error(), "in a job") {
		t.Errorf("a panic in a job gave %v", err)
	}
}
