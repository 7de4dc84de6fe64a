package plan

import (
	"errors"
	"fmt"

	"samebits/bridge/diag"
	"samebits/native/device"
	"samebits/native/ops"
)

// lower runs every needed operation's lowering, into Setup or into Step.
func (p *planner) lower(problems *diag.Problems) {
	r := p.plan.Recording
	step := ops.NewBuilder(r, p)
	setup := ops.NewBuilder(r, p)
	step.Options, setup.Options = p.choices(), p.choices()
	for i := range r.Operations {
		p.plan.Ranges[i] = Range{len(step.Commands), len(step.Commands)}
		if !p.needed[i] || p.known[i].Lower == nil {
			continue
		}
		p.current, p.setup = i, p.static[i]
		b := step
		if p.setup {
			b = setup
		}
		b.Then = p.then[i]
		err := p.known[i].Lower(b, &r.Operations[i])
		if err == nil && b.Then != nil {
			err = fmt.Errorf("%s does not do %s, which was left to it", r.Operations[i].Name, b.Then.Name)
		}
		if err != nil {
			addProblems(problems, i, r.Operations[i].Module, err)
		}
		p.plan.Ranges[i].To = len(step.Commands)
		if !p.setup && p.hoisted != nil { // what Precompute set aside
			setup.Commands = append(setup.Commands, p.hoisted...)
			p.hoisted = nil
		}
	}
	p.plan.Step, p.plan.Setup = step.Commands, setup.Commands
}

func addProblems(problems *diag.Problems, i int, module string, err error) {
	var found diag.Problems
	if !errors.As(err, &found) {
		problems.Add("UNSUPPORTED", operationPath(i), "%v", err)
		return
	}
	for _, f := range found {
		if f.Path != "" {
			f.Path = operationPath(i) + "." + f.Path
		} else {
			f.Path = operationPath(i)
		}
		if f.Detail == "" {
			f.Detail = "module " + module
		}
		*problems = append(*problems, f)
	}
}

// addProblem lists an error that is not an operation's.
func addProblem(problems *diag.Problems, path string, err error) {
	if found, ok := diag.Of(err); ok {
		*problems = append(*problems, found...)
		return
	}
	problems.Add("UNSUPPORTED", path, "%v", err)
}

// add gives memory that no storage of the recording is.
func (p *planner) add(bytes int64, area Area) device.Pointer {
	p.plan.Storages = append(p.plan.Storages, Storage{Bytes: bytes, Area: area, uses: []int{p.current}})
	return device.Pointer{Storage: len(p.plan.Storages) - 1}
}

// Scratch implements ops.Planner.
func (p *planner) Scratch(bytes int64) device.Pointer {
	if p.setup {
		return p.add(bytes, Fixed)
	}
	at := p.add(bytes, Arena)
	if p.options.KeepAll {
		p.plan.Storages[at.Storage].always = true
	}
	return at
}

// Needed implements ops.Planner.
func (p *planner) Needed(value int) bool { return p.read[value] }

// Precompute implements ops.Planner: where everything in from is static, fill's commands go to Setup.
func (p *planner) Precompute(b *ops.Builder, bytes int64, from []int, fill func(to device.Pointer)) device.Pointer {
	static := !p.options.KeepAll && !p.options.NoHoist
	for _, v := range from {
		static = static && !p.changes[p.plan.Recording.Values[v].Storage]
	}
	if p.setup || !static {
		at := p.Scratch(bytes)
		fill(at)
		return at
	}
	at := p.add(bytes, Fixed)
	mark := len(b.Commands)
	fill(at)
	p.hoisted = append(p.hoisted, b.Commands[mark:]...)
	b.Commands = b.Commands[:mark]
	return at
}
