package suite

import (
	"context"
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/gate"
	"samebits/parity/probe"
)

// Recorded is what the recorder gives: all that other arms need.
type Recorded struct {
	Cell      Cell // with size, task and image size filled in
	Recording *recording.Recording
	File      []byte // the recording as it was written
	Weights   []byte // safetensors: every storage that the step reads
	Built     []byte // safetensors: the model's own weights, for reference arms
	Inputs    []tensor.Spec
	Outputs   []tensor.Spec

	Segment string      // the part of the family's forward that the step is; empty: all of it
	Rest    bool        // what comes behind the segment can be run here
	Others  []arm.Other // cells that graphs of this one must stand beside
}

// furtherGates are those that not every cell has.
func (r *Recorded) furtherGates() []gate.ID {
	var all []gate.ID
	if r.Rest {
		all = append(all, gate.Seam)
	}
	if len(r.Others) > 0 {
		all = append(all, gate.Shape)
	}
	return all
}

// recorderName is what the recorder is called beside arms.
const recorderName = "recorder"

// recorder is a reference process that has built a cell's model.
type recorder struct {
	session
	got Recorded
}

func startRecorder(ctx context.Context, a Arm, cell Cell, probes []string) (*recorder, error) {
	built, err := a.Build(ctx, cell.buildRequest(arm.ReferenceEager))
	if err != nil {
		return nil, fmt.Errorf("build %v: %w", cell, err)
	}
	cell.Size, cell.Task, cell.ImgSize, cell.Batch = built.Size, built.Task, built.ImgSize, max(cell.Batch, 1)
	r := &recorder{session{arm: a, name: recorderName, probes: probes}, Recorded{Cell: cell, Inputs: built.Inputs,
		Segment: built.Segment, Rest: built.Rest, Others: built.Others}}
	if r.got.Built, err = export(ctx, a, arm.TheWeights, built.WeightsLength); err != nil {
		return nil, err
	}
	return r, r.place(ctx, built.Inputs, cell.Seed)
}

// record runs one step on a probe and gives its recording.
func (r *recorder) record(ctx context.Context, probe string) (*recording.Recording, []byte, arm.RecordReply, error) {
	reply, err := r.arm.Record(ctx, r.inputs[r.bankOf(probe)])
	if err != nil {
		return nil, nil, reply, fmt.Errorf("record probe %s: %w", probe, err)
	}
	file, err := export(ctx, r.arm, arm.TheRecording, reply.RecordingLength)
	if err != nil {
		return nil, nil, reply, err
	}
	rec, err := recording.Decode(file)
	if err != nil {
		return nil, nil, reply, fmt.Errorf("the recording of probe %s: %w", probe, err)
	}
	return rec, file, reply, nil
}

// first records the step that native arms will run.
func (r *recorder) first(ctx context.Context) error {
	rec, file, reply, err := r.record(ctx, r.probes[0])
	if err != nil {
		return err
	}
	r.got.Recording, r.got.File, r.got.Outputs = rec, file, reply.Outputs
	r.got.Weights, err = export(ctx, r.arm, arm.TheWeights, reply.WeightsLength)
	return err
}

// again records once more with the same probe, then twice with a contrasting one, and judges SAME-RECORDING.
func (r *recorder) again(ctx context.Context) (gate.Finding, error) {
	first, contrast := r.probes[0], r.probes[len(r.probes)-1]
	var others []gate.Recorded
	for i, name := range []string{first, contrast, contrast} {
		rec, _, _, err := r.record(ctx, name)
		if err != nil {
			return gate.Finding{}, err
		}
		others = append(others, gate.Recorded{
			What:    fmt.Sprintf("probe %s, step %d", name, i+2),
			Changes: recording.Equal(r.got.Recording, rec),
			ByInput: i == 1,
		})
	}
	return gate.JudgeSameRecording(len(r.got.Recording.Operations), others), nil
}

// export copies a file out of an arm.
func export(ctx context.Context, a Arm, what arm.What, length int64) ([]byte, error) {
	region, data, err := a.Alloc(ctx, length)
	if err != nil {
		return nil, err
	}
	if err := a.Export(ctx, arm.ExportRequest{What: what, Region: region}); err != nil {
		return nil, fmt.Errorf("export the %v: %w", what, err)
	}
	return slices.Clone(data[:length]), nil
}

// give copies a file into the memory that an arm sees.
func give(ctx context.Context, a Arm, file []byte) (arm.Region, error) {
	region, data, err := a.Alloc(ctx, int64(len(file)))
	if err != nil {
		return arm.Region{}, err
	}
	copy(data, file)
	return region, nil
}

// Record builds a cell's model and records one step of it.
func Record(ctx context.Context, start Starter, cell Cell) (Recorded, error) {
	if cell.Trains() {
		return recordStep(ctx, start, cell)
	}
	a, err := start.Reference(ctx)
	if err != nil {
		return Recorded{}, err
	}
	defer a.Stop()
	r, err := startRecorder(ctx, a, cell, probe.Names())
	if err != nil {
		return Recorded{}, err
	}
	err = r.first(ctx)
	return r.got, err
}

// inputDigests names the inputs of each probe.
func (r *Recorded) inputDigests(probes []string) (map[string]map[string]string, error) {
	digests := map[string]map[string]string{}
	for _, name := range probes {
		digests[name] = map[string]string{}
		for _, spec := range r.Inputs {
			data := make([]byte, spec.Bytes())
			if err := probe.Fill(name, spec, r.Cell.Seed, data); err != nil {
				return nil, err
			}
			digests[name][spec.Name] = digest.Tensor(spec, data)
		}
	}
	return digests, nil
}

// check finds what a recording says otherwise than the cell that was asked for.
func (r *Recorded) check() error {
	var ps diag.Problems
	h := r.Recording.Header
	for _, c := range []struct{ what, want, got string }{
		{"family", r.Cell.Family, h.Family}, {"size", r.Cell.Size, h.Size}, {"task", r.Cell.Task, h.Task},
		{"mode", r.Cell.mode(), h.Mode}, {"precision", r.Cell.Precision, h.Precision}, {"profile", r.Cell.Profile, h.Profile},
	} {
		if c.want != c.got {
			ps.Add("WRONG_RECORDING", "header."+c.what, "%q instead of %q", c.got, c.want)
		}
	}
	if r.Cell.ImgSize != h.ImgSize || r.Cell.Batch != h.Batch {
		ps.Add("WRONG_RECORDING", "header", "image size %d, batch %d instead of %d, %d", h.ImgSize, h.Batch, r.Cell.ImgSize, r.Cell.Batch)
	}
	if want := map[bool]string{true: "cuda", false: "cpu"}[r.Cell.OnGPU()]; h.DeviceType != want {
		ps.Add("WRONG_RECORDING", "header.device_type", "%q instead of %q", h.DeviceType, want)
	}
	if len(r.Outputs) == 0 {
		ps.Add("NO_OUTPUTS", "outputs", "the recorded step gives no tensor")
	}
	return ps.Err()
}
