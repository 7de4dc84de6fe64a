package recording_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor/safetensors"
)

// runPython runs a program with the reference plugin's packages. SAMEBITS_PYTHON names the interpreter.
func runPython(t *testing.T, program string, arguments ...string) {
	t.Helper()
	python := os.Getenv("SAMEBITS_PYTHON")
	if python == "" {
		t.Skip("SAMEBITS_PYTHON is not set")
	}
	path, err := filepath.Abs("../../plugins/reference")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(python, append([]string{"-c", program}, arguments...)...)
	command.Env = append(os.Environ(), "PYTHONPATH="+path)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("python: %v\n%s", err, out)
	}
}

// reserialize has Python's protobuf parse a recording and serialize it again.
const reserialize = `
import sys
from samebits_wire import recording_pb2
r = recording_pb2.Recording()
r.ParseFromString(open(sys.argv[1], "rb").read())
open(sys.argv[2], "wb").write(r.SerializeToString(deterministic=True))
`

// TestPythonEncodesTheSameBytes matters because the digest of a recording is that of its bytes.
func TestPythonEncodesTheSameBytes(t *testing.T) {
	for name, r := range map[string]*recording.Recording{"step": recordingtest.ConvBNReLU(), "every kind": everyKind()} {
		t.Run(name, func(t *testing.T) {
			ours, theirs := filepath.Join(t.TempDir(), "ours"), filepath.Join(t.TempDir(), "theirs")
			data := recordingtest.Encoded(t, r)
			if err := os.WriteFile(ours, data, 0o600); err != nil {
				t.Fatal(err)
			}
			runPython(t, reserialize, ours, theirs)
			if got, err := os.ReadFile(theirs); err != nil || !bytes.Equal(got, data) {
				t.Errorf("Python encodes other bytes (%v)", err)
			}
		})
	}
}

// record makes a real recording of a small image, on the CPU.
const record = `
import sys
from samebits_reference import profile
profile.EXACT_1.apply_environment()
import torch
from safetensors.torch import save_file
from samebits_reference import families, recorder
profile.EXACT_1.apply()
torch.set_num_threads(1)
built = families.build(families.Order("yolo9", precision="bf16", imgsz=64, batch=2))
images = torch.rand(built.input_sizes)
built.step(images)
named = recorder.Named("exact-1", profile.EXACT_1.settings(), {"torch": torch.__version__})
taken = recorder.record(built, images, named)
open(f"{sys.argv[1]}/recording", "wb").write(taken.data)
save_file(taken.weights, f"{sys.argv[1]}/weights")
`

func TestRealRecording(t *testing.T) {
	dir := t.TempDir()
	runPython(t, record, dir)
	data, err := os.ReadFile(filepath.Join(dir, "recording"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := recording.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Operations) < 1000 {
		t.Errorf("only %d operations", len(r.Operations))
	}
	if again := recordingtest.Encoded(t, r); !bytes.Equal(again, data) {
		t.Error("encoded again it has other bytes")
	}
	file, err := safetensors.ReadFile(filepath.Join(dir, "weights"))
	if err != nil {
		t.Fatal(err)
	}
	if err := recording.CheckWeights(r, file); err != nil {
		t.Error(err)
	}
}
