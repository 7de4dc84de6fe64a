package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"samebits/bridge/arm"
	"samebits/bridge/certificate"
	"samebits/bridge/diag"
	"samebits/parity/predict"
	"samebits/parity/result"
	"samebits/parity/suite"
)

type predictFlags struct {
	cellFlags
	arm, graph   string
	weights      string
	conf, iou    float64
	maxDet       int64
	classes      []int64
	masks        string
	output       string
	annotate     bool
	json         bool
	limit        int
	certificates string
	trust        []string
}

// predictArms are the arms that predict.
var predictArms = []string{arm.NativeGraph, arm.NativeEager, arm.ReferenceGraph, arm.ReferenceEager}

func (a *app) predict() *cobra.Command {
	var f predictFlags
	c := &cobra.Command{
		Use:   "predict FAMILY SOURCE...",
		Short: "Predict pictures with a family",
		Long: `predict predicts pictures: files, folders with all that lies below them, and patterns. What lies before and behind the
step is the family's own code, LibreYOLO's, in a process with PyTorch; the step runs on the arm, in a process of its own. The
next picture is prepared while one is in its step. It prints one JSON object a picture, in their order; docs/predict.md has
the fields.

Without --arm the native engine runs the step: replayed from a graph if the cell has SUPPORTS_CUDA_GRAPH here (parity status),
else eagerly, and a line says why. --cuda-graph true refuses what has no certificate; false never asks for one. An arm that is
named by --arm runs as it is called, and nobody asks for a certificate, unless --cuda-graph is named, too.

--weights takes a checkpoint of LibreYOLO (.pt), read by the family's own loader without running what stands in it, or a
safetensors file: of parity record, or of a state dict. Without it weights are random.

Exit status: 0 all pictures were predicted; 1 some were not, and stderr says why; 2 refused (a family, weights, a graph without
certificate), called wrongly, or no picture at all; 3 something broke, a file could not be written, or interrupted.`,
		Example: `  parity predict yolo9 --weights LibreYOLO9t.pt street.jpg
  parity predict resnet --weights LibreResNet18-cls.pt 'photos/*.jpg' --batch 8 --cuda-graph true > labels.jsonl
  parity predict zipdepth photos --weights LibreZipDepthb-depth.pt --output depth --annotate
  parity predict fomo goldens/images --device host`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runPredict(cmd.Context(), &f, args) },
		ValidArgsFunction: func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return a.completeFamilies(cmd, args, word)
		},
	}
	f.addPredict(c)
	flags := c.Flags()
	flags.Lookup("precision").Usage = "fp32, bf16 or fp16"
	flags.Lookup("task").Usage = "task, as detect or classify (default: the family's first)"
	flags.Lookup("seed").Usage = "seed of the weights, without --weights"
	flags.Lookup("batch").Usage = "pictures in a step (default: 1)"
	flags.StringVar(&f.arm, "arm", "", strings.Join(predictArms, ", ")+" (default: native, see above)")
	flags.StringVar(&f.graph, "cuda-graph", "auto", "auto, true or false")
	flags.StringVar(&f.weights, "weights", "", "file of weights: .pt or .safetensors")
	flags.Float64Var(&f.conf, "conf", 0, "least score (default: LibreYOLO's)")
	flags.Float64Var(&f.iou, "iou", 0, "overlap from which one of two boxes goes (default: LibreYOLO's)")
	flags.Int64Var(&f.maxDet, "max-det", 0, "most detections of a picture (default: LibreYOLO's)")
	flags.Int64SliceVar(&f.classes, "classes", nil, "`numbers` of the classes to keep, by commas (default: all)")
	flags.Lookup("classes").DefValue = "" // or help says []
	flags.StringVar(&f.masks, "masks", "polygon", "how masks of detections are given: polygon, rle or none")
	flags.StringVarP(&f.output, "output", "o", "", "folder for maps, restored and annotated pictures (default: none are written)")
	flags.BoolVar(&f.annotate, "annotate", false, "write annotated pictures, as LibreYOLO draws them, to --output")
	flags.BoolVar(&f.json, "json", true, "print one JSON object a picture; false: a line to read")
	flags.IntVar(&f.limit, "limit", 0, "take the first so many pictures (default: all)")
	flags.StringVar(&f.certificates, "certificates", "", "certificates that count, a file or a folder (default: $"+certificate.Variable+", those that were built in)")
	flags.StringSliceVar(&f.trust, "trust", nil, "lists of trusted keys, instead of parity's own and the user's")
	for flag, words := range map[string][]string{"arm": predictArms, "cuda-graph": {"auto", "true", "false"}, "masks": {"polygon", "rle", "none"}} {
		_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	}
	return c
}

// check finds what is wrong with the flags by themselves.
func (f *predictFlags) check() error {
	isGraph := f.arm == arm.NativeGraph || f.arm == arm.ReferenceGraph
	switch {
	case f.arm != "" && !slices.Contains(predictArms, f.arm):
		return usagef("--arm %q; there are %s", f.arm, strings.Join(predictArms, ", "))
	case !slices.Contains([]string{"auto", "true", "false"}, f.graph):
		return usagef("--cuda-graph %q; there are auto, true and false", f.graph)
	case f.arm != "" && f.given("cuda-graph") && (f.graph == "true" && !isGraph || f.graph == "false" && isGraph):
		return usagef("--arm %s contradicts --cuda-graph %s", f.arm, f.graph)
	case !slices.Contains([]string{"polygon", "rle", "none"}, f.masks):
		return usagef("--masks %q; there are polygon, rle and none", f.masks)
	case f.annotate && f.output == "":
		return usagef("--annotate needs a folder: --output DIR")
	case f.given("conf") && !(f.conf >= 0 && f.conf <= 1), f.given("iou") && !(f.iou >= 0 && f.iou <= 1):
		return usagef("--conf and --iou lie between 0 and 1")
	case f.given("max-det") && f.maxDet < 1, f.given("limit") && f.limit < 1:
		return usagef("--max-det and --limit are positive numbers")
	case slices.ContainsFunc(f.classes, func(class int64) bool { return class < 0 }):
		return usagef("--classes are numbers from 0")
	case f.given("weights"):
		if info, err := os.Stat(f.weights); err != nil || info.IsDir() {
			return usagef("--weights %s: there is no such file", f.weights)
		}
	}
	return nil
}

func (f *predictFlags) settings() (predict.Settings, error) {
	s := predict.Settings{ImgSize: f.imgsz.pixels, Masks: f.masks, Classes: f.classes, Annotate: f.annotate}
	if f.given("conf") {
		s.Conf = &f.conf
	}
	if f.given("iou") {
		s.IoU = &f.iou
	}
	if f.given("max-det") {
		s.MaxDet = &f.maxDet
	}
	if f.output == "" {
		return s, nil
	}
	var err error
	if s.Folder, err = filepath.Abs(f.output); err != nil {
		return s, err
	}
	return s, makeFolder("--output", f.output)
}

func (a *app) runPredict(ctx context.Context, f *predictFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	pictures, problems := predict.Find(args[1:])
	for _, problem := range problems {
		fmt.Fprintln(a.err, problem)
	}
	if f.limit > 0 {
		pictures = pictures[:min(f.limit, len(pictures))]
	}
	if len(pictures) == 0 {
		return usagef("there is no picture to predict")
	}
	b, cell, err := a.oneCell(ctx, &f.cellFlags, args[:1])
	if err != nil {
		return err
	}
	defer b.Close()
	if err := predictable(ctx, b, cell); err != nil {
		return err
	}
	o := predict.Options{Cell: cell, Arm: f.arm, Warn: func(format string, args ...any) { fmt.Fprintf(a.err, format+"\n", args...) }}
	if o.Settings, err = f.settings(); err != nil {
		return err
	}
	if f.weights != "" {
		if o.Weights, err = filepath.Abs(f.weights); err != nil {
			return err
		}
	} else {
		o.Warn("no --weights: they are random, of seed %d, and so is what is predicted", cell.Seed)
	}
	switch {
	case o.Arm == "" && f.graph == "false":
		o.Arm = arm.NativeEager
	case o.Arm == "":
		o.Arm = arm.NativeGraph
		fallthrough
	case f.given("cuda-graph"):
		o.Certified, o.Demand = a.certified(f, b), f.graph == "true"
	}
	if strings.HasPrefix(o.Arm, "native-") {
		if err := findNative(b, false); err != nil {
			return err
		}
	}
	p, err := predict.Open(ctx, b, o)
	if err != nil {
		return err
	}
	defer p.Close()
	failed, finished := len(problems), 0
	err = p.Run(ctx, pictures, func(o predict.Outcome) error {
		finished++
		if o.Problem != nil {
			failed++
			if o.Problem.Path != o.Picture.Path {
				fmt.Fprintf(a.err, "%s: %v\n", o.Picture.Path, o.Problem)
			} else {
				fmt.Fprintln(a.err, o.Problem)
			}
			return nil
		}
		return a.sayPicture(o, f.json)
	})
	if ctx.Err() != nil && finished < len(pictures) {
		fmt.Fprintf(a.err, "interrupted; %d of %d pictures are finished\n", finished, len(pictures))
		return statusError(result.ExitInfrastructure)
	}
	if err != nil {
		found, _ := diag.Of(err)
		if slices.ContainsFunc(found, func(p diag.Problem) bool { return p.Reason == predict.CannotWrite }) {
			return a.broken(err)
		}
		return err
	}
	if failed > 0 {
		fmt.Fprintf(a.err, "%d of %d pictures were not predicted\n", failed, len(pictures)+len(problems))
		return statusError(result.ExitDiffers)
	}
	return nil
}

// predictable refuses what the reference plugin's table says cannot predict pictures, before it is built. What the table does not
// have is Build's to refuse.
func predictable(ctx context.Context, b backend, c suite.Cell) error {
	table, err := b.Families(ctx)
	if err != nil {
		return err
	}
	for _, e := range table {
		if e.Family != c.Family || c.Task != "" && e.Task != c.Task {
			continue
		}
		if e.Unpredictable != "" {
			return diag.New(notPredictable, "family", "%s %s does not predict pictures here: %s", e.Family, e.Task, e.Unpredictable)
		}
		return nil
	}
	return nil
}

// notPredictable is the reference plugin's reason, too.
const notPredictable = "NOT_PREDICTABLE"

// broken says what went wrong with a file, and ends with the status of it.
func (a *app) broken(err error) error {
	fmt.Fprintf(a.err, "parity: %v\n", err)
	return statusError(result.ExitInfrastructure)
}

// sayPicture prints what was predicted.
func (a *app) sayPicture(o predict.Outcome, asJSON bool) error {
	var err error
	if asJSON {
		_, err = fmt.Fprintf(a.out, "%s\n", o.Line)
	} else {
		_, err = fmt.Fprintln(a.out, inWords(o.Line))
	}
	if err != nil {
		return a.broken(err)
	}
	return nil
}

// inWords gives the most important of an answer in one line.
func inWords(line []byte) string {
	var said struct {
		Image         string
		Width, Height int
		Arm           string
		MS            map[string]float64
		Detections    []named
		Points        []named
		Top5          []named
		Texts         []struct{ Text string }
	}
	if err := json.Unmarshal(line, &said); err != nil {
		return string(line)
	}
	var what []string
	for _, found := range []struct {
		kind string
		all  []named
	}{{"detections", said.Detections}, {"points", said.Points}} {
		if found.all != nil {
			what = append(what, fmt.Sprintf("%d %s%s", len(found.all), found.kind, counted(found.all)))
		}
	}
	for _, one := range said.Top5 {
		what = append(what, fmt.Sprintf("%s %.2f", one.Name, one.Score))
	}
	for _, one := range said.Texts {
		what = append(what, fmt.Sprintf("%q", one.Text))
	}
	text := fmt.Sprintf("%s: %dx%d", said.Image, said.Width, said.Height)
	if len(what) > 0 {
		text += ", " + strings.Join(what, ", ")
	}
	return fmt.Sprintf("%s; %s, step %.1f ms", text, said.Arm, said.MS["step"])
}

type named struct {
	Name  string
	Score float64
}

// counted gives how often each name comes, in the order in which they do.
func counted(all []named) string {
	counts, order := map[string]int{}, []string{}
	for _, one := range all {
		if counts[one.Name]++; counts[one.Name] == 1 {
			order = append(order, one.Name)
		}
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%d %s", counts[name], name)
	}
	if len(order) == 0 {
		return ""
	}
	return " (" + strings.Join(order, ", ") + ")"
}
