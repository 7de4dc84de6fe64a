package smi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// fakeProgram puts a nvidia-smi of our own into PATH.
func fakeProgram(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         Sample
		wrong        string
	}{
		{"all of it", "echo '1980, 1980, 3201, 412.53, 700.00, 47, 51, 97, 1234, P0, 0x0000000000000000'",
			Sample{SMClock: 1980, MaxSMClock: 1980, MemoryClock: 3201, Power: 412.53, PowerLimit: 700, Temperature: 47, MemoryTemp: 51,
				Utilisation: 97, MemoryUsed: 1234, PState: "P0", Throttle: "0x0000000000000000"}, ""},
		{"half of it", "echo '345, [N/A], 2619, [Not Supported], 700.00, 30, [N/A], 0, 0, P8, 0x0000000000000001'",
			Sample{SMClock: 345, MemoryClock: 2619, PowerLimit: 700, Temperature: 30, PState: "P8", Throttle: "0x0000000000000001",
				ThrottledBy: []string{"idle"}}, ""},
		{"throttled", "echo '1200, 1980, 3201, 699, 700, 88, 95, 100, 9, P0, 0x0000000000001024'",
			Sample{SMClock: 1200, MaxSMClock: 1980, MemoryClock: 3201, Power: 699, PowerLimit: 700, Temperature: 88, MemoryTemp: 95,
				Utilisation: 100, MemoryUsed: 9, PState: "P0", Throttle: "0x0000000000001024",
				ThrottledBy: []string{"power cap", "software thermal slowdown", "0x1000"}}, ""},
		{"an old driver", `case "$2" in *clocks_event_reasons*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2;; esac
echo '1, 2, 3, 4, 5, 6, 7, 8, 9, P0, 0x0000000000000004'`,
			Sample{SMClock: 1, MaxSMClock: 2, MemoryClock: 3, Power: 4, PowerLimit: 5, Temperature: 6, MemoryTemp: 7, Utilisation: 8,
				MemoryUsed: 9, PState: "P0", Throttle: "0x0000000000000004", ThrottledBy: []string{"power cap"}}, ""},
		{"no driver", "echo NVIDIA-SMI has failed; exit 9", Sample{}, "exit status 9: NVIDIA-SMI has failed"},
		{"another format", "echo hello", Sample{}, `said "hello\n"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			fakeProgram(t, c.script)
			r, err := Find("GPU-1")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // what was learnt of the driver is kept
				got, err := r.Read(t.Context())
				if c.wrong != "" {
					if err == nil || !strings.Contains(err.Error(), c.wrong) {
						t.Errorf("error %v", err)
					}
					continue
				}
				if err != nil || !reflect.DeepEqual(got, c.want) {
					t.Errorf("%v\ngot  %+v\nwant %+v", err, got, c.want)
				}
			}
		})
	}
}

// One that hangs is killed, and what is said of it is not only that.
func TestHangs(t *testing.T) {
	fakeProgram(t, "exec /bin/sleep 60")
	r, err := Find("0")
	if err != nil {
		t.Fatal(err)
	}
	r.patience = 20 * time.Millisecond
	if _, err := r.Read(t.Context()); err == nil || err.Error() != "nvidia-smi did not end within 20ms" {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

func TestAsksForOneGPU(t *testing.T) {
	fakeProgram(t, `[ "$1" = --id=GPU-7 ] && [ "$3" = --format=csv,noheader,nounits ] && echo '1, 2, 3, 4, 5, 6, 7, 8, 9, P0, 0x0'`)
	r, err := Find("GPU-7")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAbsent(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := Find("0"); err == nil || !strings.Contains(err.Error(), "not in PATH") {
		t.Errorf("error %v", err)
	}
}

func TestHeldBack(t *testing.T) {
	s := Sample{ThrottledBy: []string{"idle", "power cap"}}
	if got := s.HeldBack(); !reflect.DeepEqual(got, []string{"power cap"}) {
		t.Errorf("%v", got)
	}
}
