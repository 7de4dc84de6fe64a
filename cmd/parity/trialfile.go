package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"

	"samebits/bridge/atomicfile"
	"samebits/bridge/wholefile"
	"samebits/parity/gate"
	"samebits/parity/hazard"
	"samebits/parity/matrix"
	"samebits/parity/result"
	"samebits/parity/suite"
)

// seen is the first line of a file of what was seen: where.
type seen struct {
	Environment map[string]string `json:"environment"`
	Device      string            `json:"device,omitempty"`
}

// seenLine is a line of such a file: of one fault what the suite said.
type seenLine struct {
	Case    string         `json:"case"`
	Family  string         `json:"family"`
	Verdict result.Verdict `json:"verdict"`
	Reason  gate.Reason    `json:"reason"`
	Summary string         `json:"summary"`
	Twin    result.Verdict `json:"twin"`
	OK      bool           `json:"ok"`
}

// finished reports whether both verdicts say something of their families.
func (l seenLine) finished() bool {
	return l.Verdict.Exit() != result.ExitInfrastructure && l.Twin.Exit() != result.ExitInfrastructure
}

func readSeen(path string) (first seen, lines []seenLine, err error) {
	data, err := wholefile.Read(path, 64<<20)
	if err != nil {
		return first, nil, err
	}
	d := json.NewDecoder(strings.NewReader(string(data)))
	if err := d.Decode(&first); err != nil || first.Environment == nil {
		return first, nil, fmt.Errorf("%s is no file of parity selftest: its first line has no environment", path)
	}
	for {
		var l seenLine
		switch err := d.Decode(&l); {
		case errors.Is(err, io.EOF):
			return first, lines, nil
		case err != nil:
			return first, nil, fmt.Errorf("%s is no file of parity selftest: %w", path, err)
		case l.Family == "":
			return first, nil, fmt.Errorf("%s is no file of parity selftest: line %d is of no family", path, len(lines)+2)
		}
		lines = append(lines, l)
	}
}

// resume takes what is finished in the file, if it can stand for what would be seen here; if not, why says so. Lines of cases that nobody
// asks for now stay, too.
func (t *trials) resume(here matrix.Here) (why string) {
	first, lines, err := readSeen(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	kind, _, _ := strings.Cut(first.Device, ":")
	switch wanted, _, _ := strings.Cut(t.device, ":"); kind {
	case wanted:
	case "":
		return t.file + ": it does not say its device"
	default:
		return fmt.Sprintf("%s: it is of the device %s", t.file, first.Device)
	}
	// It stands for results here if one that was made there does.
	cell := suite.Cell{Device: t.device}
	made := cell.Result()
	made.Environment = first.Environment
	if _, why := matrix.Reuse([]result.Kept{{Result: made, File: t.file}}, cell, here); why != "" {
		return why
	}
	t.before, t.listed = first, map[string]seenLine{}
	for _, l := range lines {
		if l.finished() {
			t.listed[l.Family] = l
		}
	}
	for _, o := range t.outcomes {
		if !o.runs() {
			continue
		}
		if l, has := t.listed[o.plant.Family]; has {
			o.take(l, t.device)
		}
	}
	return ""
}

// take makes results of what a line has of them.
func (o *trialOutcome) take(l seenLine, device string) {
	faulty, twin := o.cells(device)
	f, w := faulty.Result(), twin.Result()
	f.Verdict, f.Reason, f.Summary = l.Verdict, l.Reason, l.Summary
	w.Verdict, w.Summary = l.Twin, "as an earlier run saw it"
	o.faulty, o.twin = &f, &w
}

// line is that of a fault which is through.
func (o *trialOutcome) line() seenLine {
	return seenLine{o.of.ID, o.plant.Family, o.faulty.Verdict, o.faulty.Reason, o.faulty.Summary, o.twin.Verdict, o.ok()}
}

// keep writes what was seen so far, in the order of all cases.
func (t *trials) keep() error {
	if t.file == "" {
		return nil
	}
	first := seen{map[string]string{"engine_build": t.suite.EngineBuild}, t.device}
	lines := maps.Clone(t.listed)
	if lines == nil {
		lines = map[string]seenLine{}
	}
	maps.Copy(first.Environment, t.suite.Programs)
	maps.Copy(first.Environment, t.before.Environment)
	for _, o := range t.outcomes {
		if !o.runs() || !o.done() {
			continue
		}
		lines[o.plant.Family] = o.line()
		for key, value := range o.twin.Environment {
			if key != "gpu.uuid" && !strings.HasSuffix(key, ".path") {
				first.Environment[key] = value
			}
		}
	}
	return atomicfile.Write(t.file, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		if err := e.Encode(first); err != nil {
			return err
		}
		for _, c := range hazard.Cases {
			for _, p := range c.Plants {
				l, has := lines[p.Family]
				if !has {
					continue
				}
				if err := e.Encode(l); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
