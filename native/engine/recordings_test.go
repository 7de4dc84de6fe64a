package engine

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/host"
	"samebits/native/plan"
)

// TestRecordingsKeepBits runs recordings of real models, kept outside the tree, on the host with made-up weights: as they
// are planned, and again with every result in memory of its own and nothing moved. Outputs must have the same bits, also
// after memory was overwritten and weights were set again. SAMEBITS_RUN_RECORDINGS is a pattern of paths of recordings,
// *.pb or *.pb.xz.
func TestRecordingsKeepBits(t *testing.T) {
	pattern := os.Getenv("SAMEBITS_RUN_RECORDINGS")
	if pattern == "" {
		t.Skip("SAMEBITS_RUN_RECORDINGS names no recordings")
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings %s: %v", pattern, err)
	}
	dev, err := host.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if strings.HasSuffix(file, ".xz") {
				data, err = exec.Command("xz", "-dc", file).Output()
			}
			if err != nil {
				t.Fatal(err)
			}
			r, err := recording.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			weights := madeUp(r)
			step := func(m *Model) (out [][]byte) {
				for i, spec := range m.Inputs {
					if err := m.WriteInput(i, numbers(spec.DType, spec.Bytes(), 7)); err != nil {
						t.Fatal(err)
					}
				}
				if err := m.Run(); err != nil {
					t.Fatal(err)
				}
				if err := m.Wait(); err != nil {
					t.Fatal(err)
				}
				for i, spec := range m.Outputs {
					out = append(out, make([]byte, spec.Bytes()))
					if err := m.ReadOutput(i, out[i]); err != nil {
						t.Fatal(err)
					}
				}
				return out
			}
			load := func(o plan.Options) *Model {
				m, err := Load(dev, r, weights, Options{Plan: o})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d MiB fixed, %d MiB arena, %d lanes", m.plan.FixedBytes>>20, m.plan.ArenaBytes>>20, m.plan.Schedule.Lanes)
				return m
			}
			apart := load(plan.Options{KeepAll: true})
			want := step(apart)
			if err := apart.Close(); err != nil {
				t.Fatal(err)
			}
			m := load(plan.Options{})
			defer m.Close()
			same := func(when string) {
				for i, got := range step(m) {
					if !bytes.Equal(got, want[i]) {
						t.Errorf("%s, output %s differs", when, m.Outputs[i].Name)
					}
				}
			}
			same("at first")
			if err := m.Poison(); err != nil {
				t.Fatal(err)
			}
			same("after its memory was overwritten")
			if err := m.SetWeights(weights); err != nil {
				t.Fatal(err)
			}
			same("after weights were set again")
		})
	}
}

// madeUp gives small numbers, other ones for each name; zeros for integers, which may be indices.
func madeUp(r *recording.Recording) Weights {
	all := map[string][]byte{}
	for i, s := range r.Storages {
		if s.Name != "" {
			all[s.Name] = numbers(s.DType, s.Bytes, uint32(i))
		}
	}
	return func(name string) ([]byte, bool) {
		data, ok := all[name]
		return data, ok
	}
}

func numbers(dtype tensor.DType, n int64, seed uint32) []byte {
	data := make([]byte, n)
	state := seed*2654435761 + 1
	for i := 0; i+int(dtype.Size()) <= len(data); i += int(dtype.Size()) {
		state = state*1664525 + 1013904223
		v := float32(int32(state>>16)%1000)/5000 + 0.05
		switch dtype {
		case tensor.Float32:
			binary.LittleEndian.PutUint32(data[i:], math.Float32bits(v))
		case tensor.BFloat16:
			binary.LittleEndian.PutUint16(data[i:], uint16(math.Float32bits(v)>>16))
		case tensor.Float16: // between 2^-6 and 2^-2
			binary.LittleEndian.PutUint16(data[i:], 9<<10+uint16(state>>16)%(4<<10))
		}
	}
	return data
}
