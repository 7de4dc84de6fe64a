package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"samebits/bridge/recording"
	"samebits/bridge/tensor/safetensors"
	"samebits/bridge/wholefile"
	"samebits/parity/diff"
	"samebits/parity/explain"
	"samebits/parity/result"
)

// faultCommands look for the fault behind a verdict: docs/faults.md.
func (a *app) faultCommands() []*cobra.Command {
	return []*cobra.Command{a.diff(), a.explain(), a.bisect(), a.reduce()}
}

func (a *app) diff() *cobra.Command {
	var asJSON, everything bool
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two recordings, or two results",
		Long: `diff compares two recordings (recording.pb, or folders that record or verify --keep wrote; the weights of folders are
compared, too) and names the first differences with module and source line; or two results (JSON of verify --output), and
lays verdicts, gates, digests, environment, times and memory side by side.

Recordings are equal if one can stand for the other: seed, environment and slots do not count. Results are equal if cell,
verdict, gates and digests are; environment, times and memory are shown and do not count.

Exit status: 0 equal, 1 different, 2 called wrongly.`,
		Example: `  parity diff before/recording.pb after/recording.pb
  parity diff evidence-a/detect-yolo9-t-640-b1-predict-fp32-cuda evidence-b/detect-yolo9-t-640-b1-predict-fp32-cuda
  parity diff goldens/results/classify-resnet-18-640-b1-predict-fp32-cuda.json results/classify-resnet-18-640-b1-predict-fp32-cuda.json`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return a.runDiff(args[0], args[1], asJSON, everything) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, and nothing else on stdout")
	c.Flags().BoolVar(&everything, "all", false, "of results: what is the same, too")
	return c
}

func (a *app) runDiff(nameA, nameB string, asJSON, everything bool) error {
	kinds := [2]bool{isResult(nameA), isResult(nameB)}
	if kinds[0] != kinds[1] {
		return usagef("%s is %s and %s is %s: two of a kind can be compared", nameA, kindOf(kinds[0]), nameB, kindOf(kinds[1]))
	}
	if kinds[0] {
		ra, errA := result.Read(nameA)
		rb, errB := result.Read(nameB)
		if err := errors.Join(errA, errB); err != nil {
			return usageError{err}
		}
		c := diff.Results(ra, rb)
		return a.sayDiff(c, c.Equal, asJSON, func() error { return c.Write(a.out, nameA, nameB, everything) })
	}
	ra, wa, err := readRecording(nameA)
	if err != nil {
		return err
	}
	rb, wb, err := readRecording(nameB)
	if err != nil {
		return err
	}
	c := diff.Compare(ra, rb)
	if wa != nil && wb != nil {
		c.CompareWeights(wa, wb)
	}
	return a.sayDiff(c, c.Equal, asJSON, func() error { return c.Write(a.out, nameA, nameB) })
}

func (a *app) sayDiff(c any, equal, asJSON bool, text func() error) error {
	if asJSON {
		text = func() error { return a.sayObject(c) }
	}
	if err := text(); err != nil {
		return err
	}
	if !equal {
		return statusError(result.ExitDiffers)
	}
	return nil
}

// sayObject prints one JSON object on stdout.
func (a *app) sayObject(v any) error {
	e := json.NewEncoder(a.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func isResult(path string) bool { return filepath.Ext(path) == ".json" }

func kindOf(isResult bool) string {
	if isResult {
		return "a result"
	}
	return "a recording"
}

// readRecording reads a recording, or that of a folder with the weights that lie beside it.
func readRecording(path string) (*recording.Recording, *safetensors.File, error) {
	file := path
	if isFolder(path) {
		file = filepath.Join(path, "recording.pb")
	}
	data, err := wholefile.Read(file, recording.MaxBytes)
	if err != nil {
		return nil, nil, usageError{err}
	}
	r, err := recording.Decode(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	if file == path {
		return r, nil, nil
	}
	weights, err := safetensors.ReadFile(filepath.Join(path, "weights.safetensors"))
	if errors.Is(err, os.ErrNotExist) {
		return r, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, weights, nil
}

func (a *app) explain() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain DIR|RESULT.json...",
		Short: "Say what the failing gates of a result saw, and what usually causes it",
		Long: `explain reads results that verify --output kept (or --json printed), or folders of them, and says for each gate that
failed, and for each problem that ended a run, in plain words: what the gate saw, what this result has of it, what usually
causes it, where to look, and the command that shows it again. It starts no plugin.

Exit status: 0 whatever the results say, 2 if one cannot be read.`,
		Example: `  parity explain results/detect-yolo9-t-640-b1-predict-bf16-cuda.json
  parity explain results --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return a.runExplain(args, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a result")
	return c
}

func (a *app) runExplain(names []string, asJSON bool) error {
	var paths []string
	for _, name := range names {
		if !isFolder(name) {
			paths = append(paths, name)
			continue
		}
		kept, err := result.ReadFolder(name)
		if err != nil {
			return usageError{err}
		}
		if len(kept) == 0 {
			return usagef("there is no result in %s", name)
		}
		for _, k := range kept {
			paths = append(paths, filepath.Join(name, k.File))
		}
	}
	for i, path := range paths {
		r, err := result.Read(path)
		if err != nil {
			return usageError{err}
		}
		all := explain.Result(r)
		if asJSON {
			e := json.NewEncoder(a.out)
			e.SetEscapeHTML(false)
			err = e.Encode(struct {
				File         string                `json:"file"`
				Verdict      result.Verdict        `json:"verdict"`
				Explanations []explain.Explanation `json:"explanations"`
			}{path, r.Verdict, all})
		} else {
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			err = explain.Write(a.out, r, all)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
