// Package smi asks nvidia-smi what a GPU does: clocks, power, temperature, and what holds them back. It changes nothing.
package smi

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Sample is what a GPU did in one moment. What nvidia-smi does not say is left out.
type Sample struct {
	When string `json:"when"` // of a bench: before, round 1, ..., after

	SMClock     float64  `json:"sm_clock_mhz,omitempty"`
	MaxSMClock  float64  `json:"max_sm_clock_mhz,omitempty"`
	MemoryClock float64  `json:"memory_clock_mhz,omitempty"`
	Power       float64  `json:"power_w,omitempty"`
	PowerLimit  float64  `json:"power_limit_w,omitempty"`
	Temperature float64  `json:"temperature_c,omitempty"`
	MemoryTemp  float64  `json:"memory_temperature_c,omitempty"`
	Utilisation float64  `json:"utilisation_percent,omitempty"`
	MemoryUsed  float64  `json:"memory_used_mib,omitempty"`
	PState      string   `json:"pstate,omitempty"`
	Throttle    string   `json:"throttle_mask,omitempty"` // as nvidia-smi prints it
	ThrottledBy []string `json:"throttled_by,omitempty"`  // its bits, by their names
}

// fields are asked for in this order; each is put into its place of a Sample.
var fields = []struct {
	name string
	put  func(s *Sample, text string)
}{
	{"clocks.sm", number(func(s *Sample) *float64 { return &s.SMClock })},
	{"clocks.max.sm", number(func(s *Sample) *float64 { return &s.MaxSMClock })},
	{"clocks.mem", number(func(s *Sample) *float64 { return &s.MemoryClock })},
	{"power.draw", number(func(s *Sample) *float64 { return &s.Power })},
	{"power.limit", number(func(s *Sample) *float64 { return &s.PowerLimit })},
	{"temperature.gpu", number(func(s *Sample) *float64 { return &s.Temperature })},
	{"temperature.memory", number(func(s *Sample) *float64 { return &s.MemoryTemp })},
	{"utilization.gpu", number(func(s *Sample) *float64 { return &s.Utilisation })},
	{"memory.used", number(func(s *Sample) *float64 { return &s.MemoryUsed })},
	{"pstate", func(s *Sample, text string) { s.PState = text }},
	{throttleField, func(s *Sample, text string) { s.Throttle, s.ThrottledBy = text, throttledBy(text) }},
}

// What holds clocks back was called by another name before driver 535.
const (
	throttleField    = "clocks_event_reasons.active"
	throttleFieldOld = "clocks_throttle_reasons.active"
)

func number(place func(*Sample) *float64) func(*Sample, string) {
	return func(s *Sample, text string) {
		if n, err := strconv.ParseFloat(text, 64); err == nil { // else [N/A] or [Not Supported]
			*place(s) = n
		}
	}
}

// reasons are the bits of the mask, as NVML has them.
var reasons = []struct {
	bit  uint64
	name string
}{
	{0x1, "idle"}, {0x2, "application clocks"}, {0x4, "power cap"}, {0x8, "hardware slowdown"}, {0x10, "sync boost"},
	{0x20, "software thermal slowdown"}, {0x40, "hardware thermal slowdown"}, {0x80, "power brake"}, {0x100, "display clocks"},
}

func throttledBy(mask string) []string {
	bits, err := strconv.ParseUint(strings.TrimPrefix(mask, "0x"), 16, 64)
	if err != nil {
		return nil
	}
	var names []string
	for _, r := range reasons {
		if bits&r.bit != 0 {
			names, bits = append(names, r.name), bits&^r.bit
		}
	}
	if bits != 0 {
		names = append(names, fmt.Sprintf("%#x", bits))
	}
	return names
}

// HeldBack lists what held the clocks back, idleness left out.
func (s Sample) HeldBack() []string {
	var names []string
	for _, name := range s.ThrottledBy {
		if name != reasons[0].name {
			names = append(names, name)
		}
	}
	return names
}

// Reader asks about one GPU.
type Reader struct {
	program, gpu string
	patience     time.Duration
	old          bool // the driver knows the old names
}

// Find looks for nvidia-smi. gpu is an index, a UUID or a bus id.
func Find(gpu string) (*Reader, error) {
	program, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil, errors.New("nvidia-smi is not in PATH")
	}
	return &Reader{program: program, gpu: gpu, patience: patience}, nil
}

// patience is how long nvidia-smi may take: without its daemon it opens the driver each time.
const patience = 20 * time.Second

// Read asks once.
func (r *Reader) Read(ctx context.Context) (Sample, error) {
	out, err := r.ask(ctx)
	if err != nil && !r.old && strings.Contains(err.Error(), throttleField) {
		r.old = true
		out, err = r.ask(ctx)
	}
	if err != nil {
		return Sample{}, err
	}
	return parse(out)
}

func (r *Reader) ask(ctx context.Context) (string, error) {
	within, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	var names []string
	for _, f := range fields {
		name := f.name
		if r.old && name == throttleField {
			name = throttleFieldOld
		}
		names = append(names, name)
	}
	cmd := exec.CommandContext(within, r.program, "--id="+r.gpu, "--query-gpu="+strings.Join(names, ","), "--format=csv,noheader,nounits")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return string(out), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case within.Err() != nil:
		return "", fmt.Errorf("nvidia-smi did not end within %v", r.patience)
	}
	said := strings.Join(strings.Fields(string(out)), " ")
	return "", fmt.Errorf("nvidia-smi: %w: %.300s", err, said)
}

func parse(out string) (Sample, error) {
	reader := csv.NewReader(strings.NewReader(out))
	reader.TrimLeadingSpace = true
	reader.FieldsPerRecord = len(fields)
	record, err := reader.Read()
	if err != nil {
		return Sample{}, fmt.Errorf("nvidia-smi said %.300q: %w", out, err)
	}
	var s Sample
	for i, f := range fields {
		if text := strings.TrimSpace(record[i]); !strings.HasPrefix(text, "[") {
			f.put(&s, text)
		}
	}
	return s, nil
}
