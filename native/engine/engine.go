// Package engine runs recordings on a device: it loads one with its weights, runs it eagerly or captures and replays it,
// and traces it. Eager runs and replays walk the same launch list.
package engine

import (
	"errors"
	"fmt"
	"strings"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
	"samebits/native/plan"
)

// Weights gives the bytes of a storage by its name. The engine copies them.
type Weights func(name string) ([]byte, bool)

// Options of a model.
type Options struct {
	Plan plan.Options
	// State holds parameters and buffers outside the model, so that several models share them.
	State *State
	// KeepState leaves the state's content as it is: a further model does not start over.
	KeepState bool
	// Placed is called when the step was prepared anew because memory had moved: to write tables that hold addresses.
	Placed func(m *Model) error
}

// Model is a recording with its weights at fixed addresses on a device. It is used by one goroutine at a time.
type Model struct {
	Inputs, Outputs []tensor.Spec

	device         device.Device
	recording      *recording.Recording
	plan           *plan.Plan
	state          *State
	keepState      bool
	fixed, arena   device.Memory
	program        device.Program
	setupWorkspace int64
	nodes          int
	held           held             // addresses that program holds
	placement      device.Placement // and places, with the workspaces that were asked for
	workspaces     []int64
	placed         func(m *Model) error
	retired        device.Memory // what Move left
	invalidations  int64
	staging        []byte          // for outputs that are not contiguous
	gathers        map[int]*gather // the same, for steps that do not wait; by output
}

// Load plans a verified recording for a device, allocates its memory, copies weights and runs what depends on them alone.
func Load(dev device.Device, r *recording.Recording, weights Weights, options Options) (*Model, error) {
	if err := checkTorch(r); err != nil {
		return nil, err
	}
	if options.State != nil {
		options.Plan.State = &options.State.Layout
	}
	p, err := plan.Make(r, options.Plan)
	if err != nil {
		return nil, err
	}
	m := &Model{device: dev, recording: r, plan: p, state: options.State, keepState: options.KeepState, placed: options.Placed, Inputs: specs(r, r.Inputs), Outputs: specs(r, r.Outputs)}
	if err := m.allocate(weights); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Torch is the version of PyTorch whose rules the operations follow: another one may compute what it calls the same otherwise.
const Torch = "2.11"

func checkTorch(r *recording.Recording) error {
	for _, s := range r.Header.Environment {
		if s.Key == "torch" && s.Value != Torch && !strings.HasPrefix(s.Value, Torch+".") {
			return diag.Problems{{Reason: "OTHER_TORCH", Path: "header/environment/torch",
				Summary: fmt.Sprintf("recorded with PyTorch %s, and this engine computes as PyTorch %s does", s.Value, Torch),
				Detail:  "record the family again with that version"}}
		}
	}
	return nil
}

func specs(r *recording.Recording, named []recording.Named) []tensor.Spec {
	out := make([]tensor.Spec, len(named))
	for i, n := range named {
		v := &r.Values[n.Value]
		out[i] = tensor.Spec{Name: n.Name, DType: v.DType, Sizes: v.Sizes}
	}
	return out
}

func (m *Model) allocate(weights Weights) (err error) {
	if err := m.checkWeights(weights); err != nil {
		return err
	}
	if m.state != nil {
		if err := m.state.ensure(m.device); err != nil {
			return err
		}
	}
	if m.fixed, err = m.device.Alloc(max(m.plan.FixedBytes, plan.Alignment)); err != nil {
		return fmt.Errorf("memory for weights: %w", err)
	}
	options := m.deviceOptions()
	options.Place = m.placeArena
	if m.program, err = m.device.Prepare(m.plan.Step, m.resolve, options); err != nil {
		return fmt.Errorf("prepare the step: %w", err)
	}
	if m.arena == nil {
		return fmt.Errorf("prepare the step: %s asked for no place", m.device.Name())
	}
	m.held = m.addresses()
	return m.setWeights(weights)
}

// placeArena takes memory for a step once it is known what the device's libraries want.
func (m *Model) placeArena(workspaces []int64) (device.Placement, error) {
	placement, err := m.plan.Place(workspaces)
	if err != nil {
		return placement, err
	}
	if m.arena, err = m.device.Alloc(max(m.plan.ArenaBytes, plan.Alignment)); err != nil {
		return placement, fmt.Errorf("memory for a step: %w", err)
	}
	if placement.Schedule.Lanes == 1 {
		placement.Schedule = nil // a trace runs operation by operation
	}
	m.keepPlacement(workspaces, placement)
	return placement, nil
}

// deviceOptions follow from the recording's numerics profile.
func (m *Model) deviceOptions() device.Options {
	o := device.Options{Deterministic: true}
	for _, s := range m.recording.Header.ProfileSettings {
		switch s.Key {
		case "torch.backends.cudnn.deterministic":
			o.Deterministic = s.Value == "on"
		case "torch.backends.cudnn.allow_tf32":
			o.AllowTF32 = s.Value == "on"
		}
	}
	return o
}

// unplaced is where the arena would begin before there is one; only what lies behind a multiple of 512 counts.
const unplaced = uintptr(1) << 40

func (m *Model) resolve(at device.Pointer) uintptr {
	area, offset, _ := m.plan.Slot(at)
	memory := m.memory(area)
	if memory == nil {
		if area == plan.Arena {
			return unplaced + uintptr(offset)
		}
		return 0
	}
	return memory.Address() + uintptr(offset)
}

// Resolve gives the address of a pointer of the model's plan.
func (m *Model) Resolve(at device.Pointer) uintptr { return m.resolve(at) }

// WriteTable sets memory that the plan's tail took with Tail.Table.
func (m *Model) WriteTable(at device.Pointer, data []byte) error {
	area, offset, room := m.plan.Slot(at)
	if area != plan.Fixed || int64(len(data)) > room {
		return fmt.Errorf("%d bytes do not fit into a table of %d", len(data), room)
	}
	return m.fixed.Write(offset, data)
}

// SetWeights copies weights to their places and runs again what was computed from them. Addresses stay, so a captured
// graph stays valid. It waits for a step that still runs: weights pass through memory that steps use.
func (m *Model) SetWeights(weights Weights) error {
	if err := m.checkWeights(weights); err != nil {
		return err
	}
	if err := m.program.Wait(); err != nil {
		return err
	}
	return m.setWeights(weights)
}

// checkWeights lists every entry that is missing or has another size than recorded.
func (m *Model) checkWeights(weights Weights) error {
	var problems diag.Problems
	for i := range m.recording.Storages {
		s := &m.recording.Storages[i]
		if s.Role != recording.Parameter && s.Role != recording.Buffer && s.Role != recording.Constant {
			continue
		}
		data, ok := weights(s.Name)
		if !ok {
			problems.Add("MISSING_WEIGHT", "weights/"+s.Name, "the recording reads %q, the weights have no such entry", s.Name)
			continue
		}
		if int64(len(data)) != s.Bytes {
			problems.Add("WRONG_WEIGHT", "weights/"+s.Name, "%d bytes, the recording has %d", len(data), s.Bytes)
		}
	}
	return problems.Err()
}

func (m *Model) setWeights(weights Weights) error {
	for i := range m.recording.Storages {
		s := &m.recording.Storages[i]
		if s.Role != recording.Parameter && s.Role != recording.Buffer && s.Role != recording.Constant {
			continue
		}
		memory := m.memory(m.plan.Storages[i].Area)
		shared := m.plan.Storages[i].Area == plan.Shared
		if memory == nil || s.Bytes == 0 || (shared && m.keepState) {
			continue
		}
		data, _ := weights(s.Name)
		if err := memory.Write(m.plan.Storages[i].Offset, data); err != nil {
			return fmt.Errorf("copy weight %s: %w", s.Name, err)
		}
	}
	return m.runSetup()
}

// memory is the block that an area lies in, or nil.
func (m *Model) memory(area plan.Area) device.Memory {
	switch area {
	case plan.Fixed:
		return m.fixed
	case plan.Arena:
		return m.arena
	case plan.Shared:
		return m.state.memory
	}
	return nil
}

func (m *Model) runSetup() error {
	if len(m.plan.Setup) == 0 {
		return nil
	}
	options := m.deviceOptions()
	options.Place = func([]int64) (device.Placement, error) { return device.Placement{}, nil } // all results are written anew
	setup, err := m.device.Prepare(m.plan.Setup, m.resolve, options)
	if err != nil {
		return fmt.Errorf("prepare parameter-only work: %w", err)
	}
	m.setupWorkspace = max(m.setupWorkspace, setup.WorkspaceBytes())
	err = setup.Run(0, len(m.plan.Setup))
	if err == nil {
		err = setup.Wait()
	}
	return errors.Join(err, setup.Close())
}

// Plan is how the model was laid out.
func (m *Model) Plan() *plan.Plan { return m.plan }

// Choices names what the libraries chose for each command of the step.
func (m *Model) Choices() []string { return m.program.Choices() }

// PeakBytes is the most device memory that the model holds at once.
func (m *Model) PeakBytes() int64 {
	return m.fixed.Bytes() + m.arena.Bytes() + m.setupWorkspace + m.program.WorkspaceBytes()
}

// Run launches one step eagerly, without waiting.
func (m *Model) Run() error {
	if err := m.current(); err != nil {
		return err
	}
	return m.program.Run(0, len(m.plan.Step))
}

// Capture records one step into a graph. The step is run eagerly before, so that nothing is loaded or chosen inside the
// capture, and what this run changed is put back: capturing moves no state.
func (m *Model) Capture() (nodes int, err error) {
	if err := m.current(); err != nil {
		return 0, err
	}
	if m.nodes > 0 {
		return m.nodes, nil
	}
	if err := m.warmUp(); err != nil {
		return 0, fmt.Errorf("warm-up: %w", err)
	}
	if m.nodes, err = m.program.Capture(); err != nil {
		return 0, fmt.Errorf("capture: %w", err)
	}
	return m.nodes, nil
}

func (m *Model) warmUp() error {
	// Settings and inputs may still be on their way, behind what the step waits for.
	if err := m.program.Wait(); err != nil {
		return err
	}
	// Other inputs stay untouched: a caller who has their places may be writing there.
	restore, err := m.keepContents(func(storage int) bool { return m.plan.Storages[storage].Written })
	if err != nil {
		return err
	}
	if err := m.Run(); err != nil {
		return err
	}
	if err := m.program.Wait(); err != nil {
		return err
	}
	return restore()
}

// Replay launches the captured graph, without waiting. A graph that holds addresses of memory that moved is dropped instead.
func (m *Model) Replay() error {
	if err := m.current(); err != nil {
		return err
	}
	if m.nodes == 0 {
		return errors.New("no graph was captured")
	}
	return m.program.Replay()
}

// Release drops the captured graph, and forgets BreakCapture.
func (m *Model) Release() error {
	m.nodes = 0
	return m.program.Release()
}

// Wait blocks until all launched work is done.
func (m *Model) Wait() error {
	err := m.program.Wait()
	for _, g := range m.gathers {
		g.finish(err == nil)
	}
	return err
}

// Launches is the number of commands that one eager step sends to the device.
func (m *Model) Launches() int { return len(m.plan.Step) }

// Poison overwrites everything that a step must write itself: scratch, outputs, and inputs, which the caller sets again.
func (m *Model) Poison() error {
	return m.arena.Fill(0, m.arena.Bytes(), 0xFF)
}

// Close frees the model's memory.
func (m *Model) Close() error {
	var errs []error
	if m.program != nil {
		errs = append(errs, m.program.Close())
	}
	for _, memory := range []device.Memory{m.fixed, m.arena, m.retired} {
		if memory != nil {
			errs = append(errs, memory.Free())
		}
	}
	for _, g := range m.gathers {
		errs = append(errs, g.free())
	}
	m.program, m.fixed, m.arena, m.retired, m.gathers = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
