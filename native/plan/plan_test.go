package plan

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/native/device"
	"samebits/native/ops"
)

// copyAll writes a copy of the first argument: enough to see where commands go.
func copyAll(b *ops.Builder, op *recording.Operation) error {
	from, err := ops.ValueArg(op, "self")
	if err != nil {
		return err
	}
	to, err := ops.Result(op, 0)
	if err != nil {
		return err
	}
	b.Emit(&device.Copy{To: b.Pointer(to), From: b.Pointer(from), Bytes: b.Value(to).Numel() * 4})
	return nil
}

// withTable precomputes a table from its weight and then uses it, as batch norm does.
func withTable(b *ops.Builder, op *recording.Operation) error {
	x, err := ops.ValueArg(op, "self")
	if err != nil {
		return err
	}
	w, err := ops.ValueArg(op, "weight")
	if err != nil {
		return err
	}
	to, _ := ops.Result(op, 0)
	table := b.Precompute(64, []int{w}, func(at device.Pointer) {
		b.Emit(&device.Copy{To: at, From: b.Pointer(w), Bytes: 64})
	})
	b.Emit(&device.Copy{To: b.Pointer(to), From: table, Bytes: 64})
	b.Emit(&device.Copy{To: b.Pointer(to), From: b.Pointer(x), Bytes: 64})
	return nil
}

func init() {
	ops.Register(ops.Registration{Name: "test::map", Lower: copyAll})
	ops.Register(ops.Registration{Name: "test::table", Lower: withTable})
	ops.Register(ops.Registration{Name: "test::map_", Class: ops.InPlace, Lower: copyAll})
	ops.Register(ops.Registration{Name: "test::nothing", Lower: func(*ops.Builder, *recording.Operation) error { return nil }})
	ops.Register(ops.Registration{Name: "test::view", Class: ops.View})
	ops.Register(ops.Registration{Name: "test::refuse", Lower: func(_ *ops.Builder, op *recording.Operation) error {
		return ops.Refuse(op, "arguments[0]", "never")
	}})
}

// builder makes recordings of float32 vectors with 16 elements.
type builder struct{ r recording.Recording }

func (b *builder) value(role recording.Role, name string) int {
	b.r.Storages = append(b.r.Storages, recording.Storage{Bytes: 64, Role: role, Name: name, DType: tensor.Float32})
	return b.on(len(b.r.Storages) - 1)
}

func (b *builder) on(storage int) int {
	b.r.Values = append(b.r.Values, recording.Value{
		Storage: storage, DType: tensor.Float32, Sizes: []int64{16}, Strides: []int64{1}, Alignment: 512})
	return len(b.r.Values) - 1
}

func (b *builder) call(name string, result int, args ...int) int {
	op := recording.Operation{Name: name, Module: "m", Results: []recording.Argument{{Kind: recording.ValueOf, Value: result}}}
	for i, a := range args {
		op.Arguments = append(op.Arguments, recording.Argument{Name: []string{"self", "weight"}[i], Kind: recording.ValueOf, Value: a})
	}
	b.r.Operations = append(b.r.Operations, op)
	return result
}

func (b *builder) scratch() int { return b.value(recording.Scratch, "") }

func (b *builder) plan(t *testing.T, options Options, outputs ...int) *Plan {
	t.Helper()
	for _, o := range outputs {
		b.r.Outputs = append(b.r.Outputs, recording.Named{Name: "output", Value: o})
	}
	p, err := Make(&b.r, options)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestHoistsParameterOnlyWork(t *testing.T) {
	for name, tc := range map[string]struct {
		options     Options
		setup, step int
	}{
		"on":       {Options{}, 2, 3},
		"off":      {Options{NoHoist: true}, 0, 5},
		"keep all": {Options{KeepAll: true}, 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			var b builder
			x, w := b.value(recording.Input, "images"), b.value(recording.Parameter, "w")
			cast := b.call("test::map", b.scratch(), w) // weight alone: hoisted whole
			y := b.call("test::table", b.scratch(), x, cast)
			p := b.plan(t, tc.options, b.call("test::map", b.scratch(), y))
			if len(p.Setup) != tc.setup || len(p.Step) != tc.step {
				t.Errorf("setup %d, step %d commands; want %d, %d", len(p.Setup), len(p.Step), tc.setup, tc.step)
			}
			if got := p.Storages[b.r.Values[cast].Storage]; got.Area != Arena || got.once != (tc.setup > 0) {
				t.Errorf("the cast weight lies in area %d, for Setup alone %v", got.Area, got.once)
			}
			table := p.Storages[len(b.r.Storages)]
			if want := map[bool]Area{true: Fixed, false: Arena}[tc.setup > 0]; table.Area != want {
				t.Errorf("the table lies in area %d, want %d", table.Area, want)
			}
		})
	}
}

func TestDoesNotHoistWhatChanges(t *testing.T) {
	var b builder
	w := b.value(recording.Parameter, "w")
	b.call("test::map_", w, w) // the step updates its parameter
	p := b.plan(t, Options{}, b.call("test::map", b.scratch(), w))
	if p.Hoisted != 0 || len(p.Step) != 2 {
		t.Errorf("hoisted %d, step has %d commands; want 0, 2", p.Hoisted, len(p.Step))
	}
}

func TestDropsDeadOperations(t *testing.T) {
	var b builder
	x := b.value(recording.Input, "images")
	b.call("test::map", b.scratch(), x) // nobody reads it
	kept := b.call("test::map", b.scratch(), x)
	view := b.call("test::view", b.on(b.r.Values[kept].Storage), kept)
	p := b.plan(t, Options{}, view)
	if p.Dropped != 1 || len(p.Step) != 1 {
		t.Errorf("dropped %d, step has %d commands; want 1, 1", p.Dropped, len(p.Step))
	}
}

func TestListsEveryUnknownOperationAtOnce(t *testing.T) {
	var b builder
	x := b.value(recording.Input, "images")
	b.call("test::nope", b.scratch(), x)
	b.call("test::missing", b.scratch(), x)
	b.call("test::nope", b.scratch(), x)
	_, err := Make(&b.r, Options{})
	problems, ok := diag.Of(err)
	if !ok || len(problems) != 2 {
		t.Fatalf("got %v, want two problems", err)
	}
	if p := problems[0]; p.Reason != "UNKNOWN_OPERATION" || p.Path != "operations[0]" || !strings.Contains(p.Summary, "2 calls") {
		t.Errorf("got %v", p)
	}
}

func TestRefusalsCarryTheOperationsPath(t *testing.T) {
	var b builder
	x := b.value(recording.Input, "images")
	b.r.Outputs = []recording.Named{{Name: "o", Value: b.call("test::refuse", b.scratch(), x)}}
	_, err := Make(&b.r, Options{})
	problems, _ := diag.Of(err)
	if len(problems) != 1 || problems[0].Path != "operations[0].arguments[0]" || problems[0].Detail != "module m" {
		t.Fatalf("got %v", err)
	}
}

func TestSkewKeepsTheReferencesAlignment(t *testing.T) {
	var b builder
	b.r.Header.DeviceType = "cuda"
	x := b.value(recording.Input, "images")
	b.r.Values[x].Alignment = 16
	y := b.call("test::map", b.scratch(), x)
	p := b.plan(t, Options{}, y)
	if got := lowestBit(p.Storages[b.r.Values[x].Storage].Offset); got != 16 {
		t.Errorf("input aligned to %d, want 16", got)
	}
	if got := lowestBit(p.Storages[b.r.Values[y].Storage].Offset); got != Alignment {
		t.Errorf("output aligned to %d, want %d", got, Alignment)
	}
}

// ends reports, from the device's schedule alone, whether a's last command has ended before b's first one starts.
func ends(p *Plan, a, b Storage) bool {
	if a.always || b.always || a.kept {
		return false
	}
	for _, u := range a.uses {
		if p.Ranges[u].From == p.Ranges[u].To {
			continue // no command of it touches anything
		}
		if p.Ranges[b.uses[0]].From == p.Ranges[b.uses[0]].To {
			return true
		}
		if !reaches(p, p.Ranges[u].To-1, p.Ranges[b.uses[0]].From, map[int]bool{}) {
			return false
		}
	}
	return true
}

// reaches walks back from command b over its lane and its waits.
func reaches(p *Plan, a, b int, seen map[int]bool) bool {
	if seen[b] {
		return false
	}
	seen[b] = true
	s := p.Schedule
	for c := b - 1; c >= 0; c-- {
		if s.Lane[c] == s.Lane[b] {
			if c == a || reaches(p, a, c, seen) {
				return true
			}
			break
		}
	}
	for _, w := range s.Waits[b] {
		if int(w) == a || reaches(p, a, int(w), seen) {
			return true
		}
	}
	return false
}

// Storages that live at the same time never overlap, whatever the recording; and reuse happens.
func TestPlacement(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var b builder
		live := []int{b.value(recording.Input, "images")}
		for range 2 + rng.IntN(60) {
			from := live[rng.IntN(len(live))]
			to := b.scratch()
			n := 1 + rng.Int64N(5000)
			b.r.Storages[b.r.Values[to].Storage].Bytes = n * 4
			b.r.Values[to].Sizes[0] = n
			b.call("test::map", to, from)
			live = append(live, to)
			if len(live) > 4 {
				live = live[1:]
			}
		}
		p := b.plan(t, Options{}, live[rng.IntN(len(live)):]...)
		if rng.IntN(2) == 0 {
			workspaces := make([]int64, len(p.Step))
			for i := range workspaces {
				workspaces[i] = max(0, rng.Int64N(3)-1) * rng.Int64N(2<<20)
			}
			placement, err := p.Place(workspaces)
			if err != nil {
				t.Fatal(err)
			}
			for i, bytes := range workspaces {
				if _, _, have := p.Slot(placement.Workspaces[i]); bytes > 0 && have != bytes {
					t.Fatalf("a workspace of %d bytes, want %d", have, bytes)
				}
			}
		}
		total := int64(0)
		for i, s := range p.Storages {
			if s.Area != Arena {
				continue
			}
			total += align(s.Bytes)
			if s.Offset%Alignment != 0 || s.Offset+s.Bytes > p.ArenaBytes {
				t.Fatalf("storage %d at %d with %d bytes, arena %d", i, s.Offset, s.Bytes, p.ArenaBytes)
			}
			for j, o := range p.Storages[:i] {
				together := o.Area == Arena && !(ends(p, s, o) || ends(p, o, s))
				if together && s.Offset < o.Offset+o.Bytes && o.Offset < s.Offset+s.Bytes {
					t.Fatalf("storages %d and %d overlap", i, j)
				}
			}
		}
		if p.ArenaBytes > total {
			t.Fatalf("arena of %d bytes for storages of %d", p.ArenaBytes, total)
		}
	}
}

// A second placement replaces the first one's workspaces.
func TestPlaceAgain(t *testing.T) {
	var b builder
	v := b.value(recording.Input, "images")
	for range 3 {
		v = b.call("test::map", b.scratch(), v)
	}
	p := b.plan(t, Options{}, v)
	storages, arena := len(p.Storages), p.ArenaBytes
	for _, bytes := range []int64{5 << 20, 7 << 20, 0} {
		if _, err := p.Place([]int64{bytes, 0, bytes}); err != nil {
			t.Fatal(err)
		}
		if want := arena + bytes; p.ArenaBytes > want || p.ArenaBytes < bytes {
			t.Errorf("arena of %d bytes with workspaces of %d, which come one after the other; want at most %d", p.ArenaBytes, bytes, want)
		}
	}
	if len(p.Storages) != storages {
		t.Errorf("%d storages, want %d", len(p.Storages), storages)
	}
	if _, err := p.Place([]int64{0}); err == nil {
		t.Error("workspaces of other commands are not refused")
	}
}

// Weights that only Setup reads share memory with the step, but not with its input and output.
func TestWeightsForSetupLieInTheArena(t *testing.T) {
	var b builder
	x := b.value(recording.Input, "images")
	for range 20 {
		w := b.value(recording.Parameter, "w")
		b.r.Storages[b.r.Values[w].Storage].Bytes = 4096
		x = b.call("test::table", b.scratch(), x, w)
	}
	unread := b.value(recording.Parameter, "unread")
	p := b.plan(t, Options{}, x)
	if p.FixedBytes > 20*Alignment || p.ArenaBytes < 20*4096 {
		t.Errorf("%d bytes fixed, %d in the arena", p.FixedBytes, p.ArenaBytes)
	}
	if area := p.Storages[b.r.Values[unread].Storage].Area; area != Unused {
		t.Errorf("a weight that nothing reads lies in area %d", area)
	}
	for i, s := range p.Storages {
		for j, o := range p.Storages[:i] {
			if s.Area == Arena && o.Area == Arena && (s.once || s.always) && (o.once || o.always) &&
				s.Offset < o.Offset+o.Bytes && o.Offset < s.Offset+s.Bytes {
				t.Errorf("storages %d and %d overlap", i, j)
			}
		}
	}
}

// An output has its memory from its first use to the end of the step: what ended before may have lain there, what comes later
// and what Setup alone uses may not.
func TestOutputsShareMemoryWithWhatEndedBefore(t *testing.T) {
	var b builder
	v := b.value(recording.Input, "images")
	large := func(v int) int {
		b.r.Storages[b.r.Values[v].Storage].Bytes = 1 << 20
		return v
	}
	for range 4 {
		v = large(b.call("test::map", b.scratch(), v))
	}
	early := large(b.call("test::map", b.scratch(), v))
	for range 2 {
		v = large(b.call("test::map", b.scratch(), v))
	}
	w := b.value(recording.Parameter, "w")
	large(w)
	late := large(b.call("test::table", b.scratch(), v, w))
	p := b.plan(t, Options{}, early, late)
	at := func(v int) (from, to int64) {
		s := p.Storages[b.r.Values[v].Storage]
		return s.Offset, s.Offset + s.Bytes
	}
	if p.ArenaBytes > 4<<20+8*Alignment {
		t.Errorf("arena of %d bytes: two outputs beside two results need 4 MiB at most", p.ArenaBytes)
	}
	earlyFrom, earlyTo := at(early)
	for i := range p.Storages {
		s := &p.Storages[i]
		over := s.Area == Arena && s.Offset < earlyTo && earlyFrom < s.Offset+s.Bytes && i != b.r.Values[early].Storage
		if over && (s.once || s.always || len(s.uses) > 0 && s.uses[len(s.uses)-1] >= 4) {
			t.Errorf("storage %d lies over an output that is there already, or still", i)
		}
	}
	if from, to := at(late); from < earlyTo && earlyFrom < to {
		t.Error("two outputs overlap")
	}
}

// What is repeated to far more than the weights is not kept.
func TestDoesNotHoistWhatGrows(t *testing.T) {
	var b builder
	x, w := b.value(recording.Input, "images"), b.value(recording.Parameter, "w")
	large := b.scratch()
	b.r.Storages[b.r.Values[large].Storage].Bytes = 2 << 20
	p := b.plan(t, Options{}, b.call("test::table", b.scratch(), x, b.call("test::map", large, w)))
	if p.Hoisted != 0 {
		t.Errorf("%d operations are done once", p.Hoisted)
	}
}

// Chains whose results are too large to lie side by side run on one lane.
func TestLanesThatCostMemory(t *testing.T) {
	for bytes, want := range map[int64]int{4 << 10: 2, 4 << 20: 1} {
		var b builder
		x := b.value(recording.Input, "images")
		var ends []int
		for range 2 {
			v := x
			for range 6 {
				v = b.call("test::map", b.scratch(), v)
				b.r.Storages[b.r.Values[v].Storage].Bytes = bytes
			}
			ends = append(ends, b.call("test::map", b.scratch(), v))
		}
		if p := b.plan(t, Options{}, ends...); p.Schedule.Lanes != want {
			t.Errorf("%d lanes for results of %d bytes, want %d", p.Schedule.Lanes, bytes, want)
		}
	}
}

// Large workspaces do not lie side by side: operations that have one follow one another.
func TestLargeWorkspacesExcludeEachOther(t *testing.T) {
	var b builder
	x := b.value(recording.Input, "images")
	var ends []int
	for range 2 {
		v := x
		for range 4 {
			v = b.call("test::map", b.scratch(), v)
		}
		ends = append(ends, v)
	}
	p := b.plan(t, Options{}, ends...)
	if _, err := p.Place([]int64{0, 32 << 20, 0, 0, 0, 0, 32 << 20, 0}); err != nil {
		t.Fatal(err)
	}
	if p.ArenaBytes > 33<<20 || p.Schedule.Lanes != 2 {
		t.Errorf("%d bytes and %d lanes, want one workspace and 2", p.ArenaBytes, p.Schedule.Lanes)
	}
	if !reaches(p, 1, 6, map[int]bool{}) {
		t.Error("nothing keeps the operations apart")
	}
}

// Where one workspace is most of the arena nothing runs beside its operation, and all the others side by side.
func TestNothingRunsBesideWhatIsWidest(t *testing.T) {
	const length = 12
	var b builder
	x := b.value(recording.Input, "images")
	var ends []int
	for range 3 {
		v := x
		for range length {
			v = b.call("test::map", b.scratch(), v)
			b.r.Storages[b.r.Values[v].Storage].Bytes = 1 << 20
		}
		ends = append(ends, b.call("test::map", b.scratch(), v))
	}
	p := b.plan(t, Options{}, ends...)
	workspaces := make([]int64, len(p.Step))
	const widest = 3
	workspaces[widest] = 64 << 20
	if _, err := p.Place(workspaces); err != nil {
		t.Fatal(err)
	}
	lanes, arena := p.Schedule.Lanes, p.ArenaBytes
	for c := range p.Step {
		if c != widest && !reaches(p, min(c, widest), max(c, widest), map[int]bool{}) {
			t.Errorf("command %d may run beside the widest", c)
		}
	}
	p.planner.options.OneLane = true
	if _, err := p.Place(workspaces); err != nil {
		t.Fatal(err)
	}
	if lanes != 3 || arena > p.ArenaBytes+p.ArenaBytes/256 {
		t.Errorf("%d lanes and %d bytes, want 3 and %d", lanes, arena, p.ArenaBytes)
	}
}

func TestReusesMemory(t *testing.T) {
	var b builder
	v := b.value(recording.Input, "images")
	for range 100 {
		v = b.call("test::map", b.scratch(), v)
	}
	if p := b.plan(t, Options{}, v); p.ArenaBytes > 4*Alignment {
		t.Errorf("a chain of 100 operations takes %d bytes, want at most %d", p.ArenaBytes, 4*Alignment)
	}
}

// Two chains from one input run side by side and meet again.
func TestSpreadsIndependentChains(t *testing.T) {
	var b builder
	x := b.value(recording.Input, "images")
	left, right := x, x
	for range 3 {
		left = b.call("test::map", b.scratch(), left)
		right = b.call("test::map", b.scratch(), right)
	}
	sum := b.scratch()
	b.call("test::map", sum, left)
	b.r.Operations[len(b.r.Operations)-1].Arguments = append(b.r.Operations[len(b.r.Operations)-1].Arguments,
		recording.Argument{Name: "other", Kind: recording.ValueOf, Value: right})
	p := b.plan(t, Options{}, sum)
	if p.Schedule.Lanes != 2 {
		t.Fatalf("%d lanes, want 2", p.Schedule.Lanes)
	}
	waits := 0
	for _, w := range p.Schedule.Waits {
		waits += len(w)
	}
	if waits != 1 || len(p.Schedule.Waits[6]) != 1 {
		t.Errorf("waits %v, want one, before the last command", p.Schedule.Waits)
	}
	b.r.Outputs = nil
	if p := b.plan(t, Options{OneLane: true}, sum); p.Schedule.Lanes != 1 {
		t.Errorf("%d lanes with the switch off, want 1", p.Schedule.Lanes)
	}
}

// Whatever the recording, what an operation depends on has ended before it starts.
func TestScheduleKeepsDependencies(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		var b builder
		values := []int{b.value(recording.Input, "images")}
		for range 40 {
			from := values[rng.IntN(len(values))]
			if rng.IntN(5) == 0 {
				b.call("test::map_", from, from)
				continue
			}
			name := "test::map"
			if rng.IntN(4) == 0 {
				name = "test::nothing" // takes part in the order without a command
			}
			values = append(values, b.call(name, b.scratch(), from))
		}
		p := b.plan(t, Options{}, values...)
		silent := func(i int) bool { return b.r.Operations[i].Name == "test::nothing" }
		follows := make([][]bool, len(b.r.Operations)) // by way of silent operations too
		for i := range b.r.Operations {
			follows[i] = make([]bool, i)
			for j := i - 1; j >= 0; j-- {
				a, c := &b.r.Operations[j], &b.r.Operations[i]
				follows[i][j] = a.Results[0].Value == c.Arguments[0].Value || a.Results[0].Value == c.Results[0].Value ||
					a.Arguments[0].Value == c.Results[0].Value
				for k := j + 1; k < i; k++ {
					follows[i][j] = follows[i][j] || (follows[i][k] && follows[k][j])
				}
				if follows[i][j] && !silent(i) && !silent(j) &&
					!reaches(p, p.Ranges[j].To-1, p.Ranges[i].From, map[int]bool{}) {
					t.Fatalf("operation %d may start before %d has ended", i, j)
				}
			}
		}
	}
}

// A weight's gradient, which nothing waits for, leaves the lane of its input's gradient.
func TestSplitsGradients(t *testing.T) {
	mask := func(bits ...bool) recording.Argument {
		a := recording.Argument{Name: "output_mask", Kind: recording.List}
		for _, b := range bits {
			a.Items = append(a.Items, recording.Argument{Kind: recording.Boolean, Bool: b})
		}
		return a
	}
	value := func(v int) recording.Argument { return recording.Argument{Kind: recording.ValueOf, Value: v} }
	op := recording.Operation{Name: "aten::convolution_backward", Module: "m",
		Arguments: []recording.Argument{{Name: "grad_output", Kind: recording.ValueOf, Value: 7}, mask(true, true, true)},
		Results:   []recording.Argument{value(1), value(2), value(3)}}
	r := &recording.Recording{Operations: []recording.Operation{{Name: "test::map"}, op}}
	got := split(r).Operations
	if len(got) != 3 || len(r.Operations) != 2 {
		t.Fatalf("%d operations of %d, want 3 of 2", len(got), len(r.Operations))
	}
	for i, want := range [][]int{{1}, {2, 3}} {
		if values := recording.Values(got[1+i].Results, nil); !slices.Equal(values, want) {
			t.Errorf("part %d gives values %v, want %v", i, values, want)
		}
	}
	if items := got[1].Arguments[1].Items; !items[0].Bool || items[1].Bool || items[2].Bool {
		t.Errorf("mask of the first part: %v", items)
	}
	if items := op.Arguments[1].Items; !items[1].Bool {
		t.Errorf("the recording itself was changed")
	}
	op.Results[0] = recording.Argument{}
	if _, _, ok := gradients(&op); ok {
		t.Errorf("split a call that gives one gradient")
	}
}
