package cuda

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"samebits/bridge/fuzztest"
)

const choiceText = `{"convolution":"conv float32 n1","engine":"ConvFwd_eng70_k2=12_k18=0","workspace":1024,"heuristic":"instant 1 of 2, 4 proposed"}`

// FuzzPlanLine gives a line its right checksum, which other bytes would not have: what is taken can be built anew.
func FuzzPlanLine(f *testing.F) {
	f.Add([]byte(choiceText))
	f.Add([]byte(`{"convolution":"x","engine":"A_eng-1","workspace":-1,"heuristic":"y"}`))
	f.Add([]byte(`{"convolution":"x","engine":"A_eng9_k99999999999=1","workspace":9223372036854775807,"heuristic":"y"}`))
	c := newPlanCache("", "a GPU", func(string) {})
	f.Fuzz(func(t *testing.T, text []byte) {
		var choice planChoice
		var ok bool
		fuzztest.Bounded(t, len(text), 1<<20, 200, func() { choice, ok = c.parse(c.checksum(text) + " " + string(text)) })
		if !ok {
			return
		}
		if e, err := parseEngine(choice.Engine); err != nil || len(e.knobs) > mostKnobs || !e.equal(e) || choice.Workspace < 0 {
			t.Errorf("%+v cannot be built: %v", choice, err)
		}
		line := c.line(choice)
		again, ok := c.parse(line)
		if !ok || again != choice || c.line(again) != line {
			t.Errorf("%+v became %+v (%t)", choice, again, ok)
		}
	})
}

// FuzzPlanFile reads any file of choices, and any among sound lines: it keeps the sound ones, and leaves a file that is sound.
func FuzzPlanFile(f *testing.F) {
	f.Add([]byte("samebits-plans-1 a GPU\n"), false)
	f.Add([]byte("\n\n\x00"), true)
	f.Add([]byte(strings.Repeat("0", 32)+" "+choiceText), true)
	f.Fuzz(func(t *testing.T, data []byte, among bool) {
		folder := t.TempDir()
		logged := 0
		open := func() *planCache {
			return newPlanCache(folder, "a GPU", func(line string) {
				logged++
				if !fuzztest.Readable(line) {
					t.Errorf("it logs %q", line)
				}
			})
		}
		c := open()
		sound := planChoice{"sound", "ConvFwd_eng1", 0, "instant 1 of 1"}
		if among {
			line := c.line(sound) + "\n"
			data = append(append([]byte(line), data...), ("\n" + line)...)
		}
		if err := os.WriteFile(c.path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		fuzztest.Bounded(t, len(data), 2<<20, 200, func() { c.get("") })
		if got, ok := c.get(sound.Convolution); among && (!ok || got != sound) {
			t.Errorf("a sound line was lost: %v", got)
		}
		logged = 0
		d := open()
		d.get("")
		if logged > 0 || !reflect.DeepEqual(d.choices, c.choices) {
			t.Errorf("repaired, it gives %v instead of %v, and has to be repaired again (%d lines)", d.choices, c.choices, logged)
		}
		d.put(planChoice{"fresh", "ConvFwd_eng2", 5, "instant 1 of 1"})
		d.flush()
		if e := open(); func() bool { _, ok := e.get("fresh"); return !ok }() || len(e.choices) < len(c.choices) {
			t.Error("what was added is not there")
		}
	})
}

// FuzzCubin reads any entry of compiled kernels: it is whole or compiled again.
func FuzzCubin(f *testing.F) {
	f.Add([]byte("samebits-cubin-1 \n\x7fELF"), false)
	f.Add([]byte("\x7fELF"), true)
	f.Fuzz(func(t *testing.T, data []byte, sound bool) {
		c := cache{folder: t.TempDir(), log: func(line string) {
			if !fuzztest.Readable(line) {
				t.Errorf("it logs %q", line)
			}
		}}
		if sound {
			c.put("key", data)
		} else if err := os.WriteFile(c.path("key"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		cubin, ok := c.get("key", "kernel")
		switch line, rest, _ := bytes.Cut(data, []byte("\n")); {
		case sound && (!ok || !bytes.Equal(cubin, data)):
			t.Error("what was put is not what is there")
		case !sound && ok && (!bytes.Equal(cubin, rest) || string(line) != checksumLine(rest)):
			t.Error("a damaged entry was taken")
		}
		if left, err := filepath.Glob(filepath.Join(c.folder, "new-*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
}
