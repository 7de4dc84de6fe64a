package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/host"
	"samebits/parity/bench"
	"samebits/parity/launch"
	"samebits/parity/suite/suitetest"
)

// withoutSMI hides a nvidia-smi that may be here, or puts ours in its place.
func withoutSMI(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if script != "" {
		if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

const quietGPU = "echo '1980, 1980, 2619, 400.0, 700.00, 40, 45, 0, 500, P0, 0x0000000000000000'\n"

var benchTimes = suitetest.Bench{Compiled: suitetest.ULPs(3), Milliseconds: map[string]float64{arm.ReferenceEager: 14, arm.ReferenceGraph: 4,
	arm.ReferenceCompile: 3.5, arm.NativeEager: 5, arm.NativeGraph: 3}}

func measuring(b suitetest.Bench) *fakes {
	return &fakes{gpu: true, Starter: suitetest.Starter{Faults: suitetest.Faults{Bench: b}}}
}

func TestBenchOutput(t *testing.T) {
	noCompiler := benchTimes
	noCompiler.PrepareFails = map[string]error{arm.ReferenceCompile: &host.CallError{Plugin: "reference", Call: "Prepare", Code: codes.Unimplemented,
		Problems: diag.Problems{{Reason: "COMPILE_FAILED", Summary: "torch.compile cannot compile this step: RuntimeError: Failed to find C compiler."}}}}
	wrong := measuring(benchTimes)
	wrong.Faults.Native = suitetest.ULPs(1)
	for _, c := range []struct {
		name, smi string
		fakes     *fakes
		args      string
		status    int
		says      string // on stderr
	}{
		{"bench", quietGPU, measuring(benchTimes), "bench fake", 0, "[1/1] fake batch 1 fp32 on cuda:0: step 8 of 8, round 2 of 2"},
		{"bench-no-smi", "", measuring(benchTimes), "bench fake --no-compile", 0, "nvidia-smi is not in PATH"},
		{"bench-partly", quietGPU, measuring(noCompiler), "bench fake --precision fp32,bf16", 2, "[2/2]"},
		{"bench-differs", quietGPU, wrong, "bench fake --no-compile", 1, ""},
		{"bench-host", "", &fakes{}, "bench fake", 0, "no GPU can be used: libcuda.so.1: no such file; measuring on the device host"},
		{"bench-broken", "", &fakes{Starter: suitetest.Starter{Faults: suitetest.Faults{Dead: errors.New("no module named torch")}}}, "bench fake", 3, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			withoutSMI(t, c.smi)
			got := parity(t, c.fakes, append(strings.Fields(c.args), "--starts", "0", "--rounds", "2")...)
			if got.status != c.status {
				t.Errorf("status %d: %s", got.status, got.stderr)
			}
			if got.fakes.Alive != 0 {
				t.Errorf("%d processes were left behind", got.fakes.Alive)
			}
			if !strings.Contains(got.stderr, c.says) {
				t.Errorf("stderr: %s", got.stderr)
			}
			golden(t, c.name, got.stdout)
		})
	}
}

func TestBenchHelp(t *testing.T) {
	golden(t, "help-bench", parity(t, &fakes{}, "bench", "--help").stdout)
}

func TestBenchFlags(t *testing.T) {
	withoutSMI(t, "")
	for _, c := range []struct{ args, says string }{
		{"bench", "requires at least 1 arg"},
		{"bench fake --all", "--all stands for all families"},
		{"bench --all --size s", "--size is of a family"},
		{"bench fake --rounds 0", "--rounds 0: it takes 1 to 10000"},
		{"bench fake --rounds 99999999999", "--rounds 99999999999: it takes 1 to 10000"},
		{"bench fake --iterations 0", "--iterations 0: it takes 1 to 1000000"},
		{"bench fake --iterations -1", "--iterations -1: it takes 1 to 1000000"},
		{"bench fake --iterations 1000001", "--iterations 1000001: it takes 1 to 1000000"},
		{"bench fake --starts -1", "--starts -1: it takes 0 to 1000"},
		{"bench fake --starts 99999999999", "--starts 99999999999: it takes 0 to 1000"},
		{"bench fake --resume", "--resume needs --output"},
		{"bench fake --mode train", "unknown flag: --mode"},
		{"bench fake --precision fp8", `--precision "fp8"`},
		{"bench nosuch*", "no cell matches"},
	} {
		t.Run(c.args, func(t *testing.T) {
			got := parity(t, &fakes{}, strings.Fields(c.args)...)
			if got.status != 2 || !strings.Contains(got.stderr, c.says) {
				t.Errorf("status %d: %s", got.status, got.stderr)
			}
		})
	}
}

// With --json stdout holds one object and nothing else; first predictions are in it.
func TestBenchJSON(t *testing.T) {
	withoutSMI(t, quietGPU)
	got := parity(t, measuring(benchTimes), "bench", "fake", "--rounds", "1", "--iterations", "3", "--starts", "2", "--json")
	var r bench.Report
	decoder := json.NewDecoder(strings.NewReader(got.stdout))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil || decoder.More() {
		t.Fatalf("%v\n%s%s", err, got.stdout, got.stderr)
	}
	if got.status != 0 || len(r.Cells) != 1 || r.Device != "cuda:0" || !r.GPUFigures || r.Monitor.Program != "nvidia-smi" {
		t.Errorf("status %d, %+v", got.status, r)
	}
	c := r.Cells[0]
	if len(c.First) != 3 || len(c.First[0].Times) != 2 || len(c.GPU) != 3 || c.Arms[4].Step.Steps != 3 {
		t.Errorf("%+v", c)
	}
	if want := "parity bench fake --precision fp32 --device cuda:0 --rounds 1 --iterations 3 --starts 2"; r.Command != want {
		t.Errorf("command %q", r.Command)
	}
	for _, key := range []string{"engine_build", "reference_build", "torch", "cudnn"} {
		if r.Environment[key] == "" {
			t.Errorf("the environment lacks %s: %v", key, r.Environment)
		}
	}
}

// Each finished cell is on disk at once, and a run that was interrupted goes on where it was.
func TestBenchResumes(t *testing.T) {
	withoutSMI(t, "")
	dir := t.TempDir()
	args := []string{"bench", "--all", "--output", dir, "--starts", "0", "--rounds", "1", "--iterations", "2"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	list := []launch.Entry{{Family: "fake", Task: "classify", Size: "s", ImgSize: 8, Group: launch.Matrix},
		{Family: "fake", Task: "detect", Size: "s", ImgSize: 8, Group: launch.Matrix}}
	f := measuring(benchTimes)
	f.table = list
	f.OnStart = func(process int) {
		if process == 8 { // of the second cell: one records, five are arms
			cancel()
		}
	}
	got := parityUntil(ctx, f, args...)
	if got.status != 3 || !strings.Contains(got.stderr, "interrupted; 1 of 2 cells are measured") {
		t.Fatalf("status %d: %s", got.status, got.stderr)
	}
	r, err := bench.Read(filepath.Join(dir, benchFile))
	if err != nil || len(r.Cells) != 1 || r.Cells[0].Task != "classify" {
		t.Fatalf("%v, %d cells", err, len(r.Cells))
	}
	again := measuring(benchTimes)
	again.table = list
	got = parity(t, again, append(args, "--resume")...)
	if got.status != 0 || !strings.Contains(got.stderr, "1 of 2 cells are measured already") || again.Processes != 6 {
		t.Errorf("status %d, %d processes: %s", got.status, again.Processes, got.stderr)
	}
	r, err = bench.Read(filepath.Join(dir, benchFile))
	if err != nil || len(r.Cells) != 2 || r.Ratios[0].Cells != 2 {
		t.Errorf("%v, %d cells", err, len(r.Cells))
	}
	page, err := os.ReadFile(filepath.Join(dir, benchPage))
	if err != nil || !strings.Contains(string(page), "fake-s detect 8 batch 1 fp32") {
		t.Errorf("%v, the page has %d bytes", err, len(page))
	}
	changed := measuring(benchTimes)
	changed.table = list
	changed.engine = strings.Repeat("cd", 32)
	got = parity(t, changed, append(args, "--resume")...)
	if got.status != 0 || !strings.Contains(got.stderr, "begun anew: engine_build was abab") || changed.Processes != 12 {
		t.Errorf("status %d, %d processes: %s", got.status, changed.Processes, got.stderr)
	}
}

// Without --resume a report, and whatever else has its name, is kept under another one.
func TestBenchKeepsTheReportBefore(t *testing.T) {
	withoutSMI(t, "")
	dir := t.TempDir()
	path := filepath.Join(dir, benchFile)
	args := []string{"bench", "fake", "--output", dir, "--starts", "0", "--rounds", "1", "--iterations", "2"}
	for i, want := range []string{"", "bench-1.json", "bench-2.json"} {
		before, _ := os.ReadFile(path) // the first time there is none
		got := parity(t, measuring(benchTimes), args...)
		if got.status != 0 || strings.Contains(got.stderr, "begun anew") != (want != "") {
			t.Fatalf("run %d: status %d: %s", i, got.status, got.stderr)
		}
		if want == "" {
			continue
		}
		if says := path + " is begun anew: there is no --resume; what was measured before is in " + filepath.Join(dir, want); !strings.Contains(got.stderr, says) {
			t.Errorf("run %d: %s", i, got.stderr)
		}
		if kept, err := os.ReadFile(filepath.Join(dir, want)); err != nil || string(kept) != string(before) {
			t.Errorf("run %d: %v, %s holds %s", i, err, want, kept)
		}
		if err := os.WriteFile(path, []byte("torn"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that is no report is not written over.
func TestBenchResumesNothing(t *testing.T) {
	withoutSMI(t, "")
	dir := t.TempDir()
	path := filepath.Join(dir, benchFile)
	if err := os.WriteFile(path, []byte(`{"schema": 1, "cells": [`), 0o644); err != nil {
		t.Fatal(err)
	}
	got := parity(t, measuring(benchTimes), "bench", "fake", "--output", dir, "--resume")
	if got.status != 3 || !strings.Contains(got.stderr, path) {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != `{"schema": 1, "cells": [` {
		t.Errorf("%v, it holds %s", err, data)
	}
}
