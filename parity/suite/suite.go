// Package suite verifies cells: it runs every arm of a cell in a process of its own, hands all of them the same recording,
// weights and inputs, and lets package gate judge what comes back. docs/architecture.md walks through one verification.
package suite

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/parity/gate"
	"samebits/parity/probe"
	"samebits/parity/result"
	"samebits/parity/turns"
)

// Suite verifies cells.
type Suite struct {
	Start  Starter
	Timing Timing
	// Keep is a folder for the recording, weights, inputs and outputs of every cell; empty: nothing is kept.
	Keep string
	// EngineBuild is the digest of the native plugin's program, that of the mode, for the environment of results.
	EngineBuild string
	// Programs are digests of what else takes part, by their keys in the environment of results.
	Programs map[string]string
	// PluginFlags are those of the command line that name plugins, a space before each: commands that show something again have them.
	PluginFlags string
	// Progress is told before each part of the work; it may be nil.
	Progress func(Event)

	// Calls is told of every call on an arm, in the order in which they end, also of several at once; it may be nil.
	Calls func(Call)

	// OnRecording is handed the file of the cell's recording, which no-one may change; it may be nil.
	OnRecording func(file []byte)

	// Gates are judged alone, if there are any: no other arms are started than those that they need, and none is measured. It is of
	// mode predict alone.
	Gates []gate.ID

	// Together prepares all arms of a cell at the same time, and measures them at the end, one after the other. It is of
	// mode predict alone. Otherwise an arm's process starts when the one before has ended, which takes less memory; only the
	// eager reference's two are there together, for REPRODUCES.
	Together bool
	// Turns orders this suite's cells where several are verified at the same time, or one Together; otherwise it may be nil.
	Turns *turns.Turns
	// Memory is that of the GPU, of which Verify takes what a cell's processes will fill; nil: there is enough.
	Memory *turns.Memory
}

// Event says what the suite is doing.
type Event struct {
	Cell        Cell
	Step, Steps int // from 1
	What        string
}

// verification is the state of one cell's verification.
type verification struct {
	suite    *Suite
	asked    Cell // as it was asked for
	cell     Cell // with what the recorder has filled in
	probes   []string
	recorded Recorded
	ready    chan struct{} // is closed when the recording is there for other arms

	describing  sync.Mutex
	environment map[string][]recording.Setting // by side

	eager    gate.Run            // what the eager reference gave
	runs     map[string]gate.Run // what arms gave, where SEAM or SHAPE asks for it
	training training            // of a cell of mode train
	result   result.Result
	account  account
	step     int

	nearby []gate.Run // of the eager reference, on inputs one ULP away

	room *room // on the device; nil: there is enough
	crew crew

	parts     int            // of mode predict, the recorder among them; 0: not known yet
	processes []gate.Process // for the gate PROC
}

// The sides whose environments are recorded.
const (
	reference = "reference"
	native    = "native"
)

// Verify verifies one cell. It always gives a result: what stopped it is in the verdict.
func (s *Suite) Verify(ctx context.Context, cell Cell) result.Result {
	v := s.begin(cell)
	v.finish(ctx, guarded(func() error { return v.run(ctx) }))
	return v.result
}

func (s *Suite) begin(cell Cell) *verification {
	v := &verification{suite: s, asked: cell, cell: cell, probes: probe.Names(), result: cell.Result(),
		ready: make(chan struct{}), environment: map[string][]recording.Setting{}, runs: map[string]gate.Run{},
		room: s.newRoom(cell), crew: oneByOne, account: account{began: time.Now(), memory: map[string]result.Memory{}}}
	v.result.Asked, v.result.Reproduce = s.Gates, v.command(s.Gates...)
	return v
}

// command verifies the cell again, some of its gates alone if there are any.
func (v *verification) command(only ...gate.ID) string {
	again := "parity verify " + v.flags()
	if len(only) == 0 {
		return again
	}
	names := make([]string, len(only))
	for i, id := range only {
		names[i] = string(id)
	}
	return again + " --gate " + strings.Join(names, ",")
}

// flags are the command line's for this cell, on the plugins that it was asked of.
func (v *verification) flags() string { return v.cell.Flags() + v.suite.PluginFlags }

// reproduce is the command that shows the failure of a gate again.
func (v *verification) reproduce(id gate.ID) string {
	if slices.Contains(gate.Situations, id) {
		return v.command(id) // cheap, for it needs no replays of others
	}
	return v.command(v.suite.Gates...)
}

// run goes through the arms. It ends early, without an error, where a gate that failed leaves nothing to compare with.
func (v *verification) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer v.room.leave()
	defer cancel()
	if v.cell.Trains() {
		return v.train(ctx)
	}
	return v.predict(ctx)
}

func (v *verification) progress(what string) {
	v.step++
	v.tell(v.event(what))
}

// event says what is done in this step.
func (v *verification) event(what string) Event {
	steps := Steps(v.cell)
	if v.parts > 0 {
		steps = v.parts
	}
	for _, id := range v.recorded.furtherGates() { // one more each
		if v.asks(id) {
			steps++
		}
	}
	return Event{v.cell, v.step, steps, what}
}

func (v *verification) tell(e Event) {
	if v.suite.Progress != nil {
		v.suite.Progress(e)
	}
}

// Steps is how many parts the work on a cell has.
func Steps(c Cell) int {
	switch {
	case !c.Trains():
		return 7 // recorder, eager twice, graph or double precision, native eager, native graph twice
	case c.OnGPU():
		return 10 // and each arm resumed
	}
	return 9
}

func (v *verification) judge(id gate.ID, f gate.Finding) {
	if f.Outcome == gate.Failed && f.Reproduce == "" {
		f.Reproduce = v.reproduce(id)
	}
	v.result.Gates[id] = f
}

// judgeArm adds the finding for one arm to a gate that is judged for each.
func (v *verification) judgeArm(id gate.ID, name string, f gate.Finding) {
	if f.Outcome == gate.Failed && f.Reproduce == "" {
		f.Reproduce = v.reproduce(id)
	}
	arms := v.result.Gates[id].Arms
	if arms == nil {
		arms = map[string]gate.Finding{}
	}
	arms[name] = f
	v.result.Gates[id] = gate.Sum(arms)
}

// asks reports whether one of these gates is to be judged.
func (v *verification) asks(ids ...gate.ID) bool {
	return len(v.suite.Gates) == 0 || slices.ContainsFunc(ids, func(id gate.ID) bool { return slices.Contains(v.suite.Gates, id) })
}

func (v *verification) failed(id gate.ID) bool { return v.result.Gates[id].Outcome == gate.Failed }

// record makes the recording, and if it is asked to, records again and judges SAME-RECORDING.
func (v *verification) record(ctx context.Context, again bool) error {
	v.progress("recording")
	a, err := v.startIn(ctx, v.enterToRecord, recorderName, v.suite.Start.Reference)
	if err != nil {
		return err
	}
	defer v.room.recorderLeft()
	defer a.Stop()
	r, err := startRecorder(ctx, a, v.cell, v.probes)
	if err != nil {
		return err
	}
	v.cell = r.got.Cell
	v.fillIn()
	v.recorded.Segment, v.recorded.Rest, v.recorded.Others = r.got.Segment, r.got.Rest, r.got.Others
	v.noteSeam()
	if err := v.enter(ctx, a); err != nil {
		return err
	}
	if err := v.describe(ctx, a, reference); err != nil {
		return err
	}
	if err := r.first(ctx); err != nil {
		return err
	}
	v.recorded = r.got
	if err := v.recorded.check(); err != nil {
		return err
	}
	v.noteRecording()
	v.result.Digests.Weights = digest.Bytes(v.recorded.Weights)
	if v.result.Digests.Inputs, err = v.recorded.inputDigests(v.probes); err != nil {
		return err
	}
	close(v.ready)
	if err := v.keepRecorded(); err != nil || !again {
		return err
	}
	finding, err := r.again(ctx)
	if err != nil {
		return err
	}
	v.judge(gate.SameRecording, finding)
	return nil
}

// noteRecording names the recording in the result, and shows it to who wants to see it.
func (v *verification) noteRecording() {
	v.result.Digests.Recording = v.recorded.Recording.Digest
	v.result.Weights = weightBytes(v.recorded.Recording)
	if v.suite.OnRecording != nil {
		v.suite.OnRecording(v.recorded.File)
	}
}

// fillIn puts the family's own size, task and image size into the result.
func (v *verification) fillIn() {
	filled := v.cell.Result()
	r := &v.result
	r.Size, r.Task, r.ImgSize, r.Batch, r.Reproduce = filled.Size, filled.Task, filled.ImgSize, filled.Batch, v.command(v.suite.Gates...)
}

// took notes that an arm ran, and what it gave.
func (v *verification) took(name string, run gate.Run) error {
	v.result.Arms = append(v.result.Arms, name)
	if len(v.recorded.furtherGates()) > 0 {
		v.runs[name] = run
	}
	if v.result.Digests.Outputs == nil {
		v.result.Digests.Outputs = map[string]map[string]map[string]string{}
	}
	digests := map[string]map[string]string{}
	for _, probe := range v.probes {
		digests[probe] = run[probe].Digests()
	}
	v.result.Digests.Outputs[name] = digests
	return v.keepRun(name, run)
}

// measure times arms that are ready, one after the other, while nobody else uses the device.
func (v *verification) measure(ctx context.Context, sessions ...*session) error {
	if v.suite.Timing.Max == 0 {
		return nil
	}
	done, err := v.suite.Turns.Alone(ctx)
	if err != nil {
		return err
	}
	defer done()
	for _, s := range sessions {
		t, err := v.suite.Timing.measure(ctx, s)
		if err != nil {
			return err
		}
		v.result.Timings[s.name] = t
	}
	return nil
}
