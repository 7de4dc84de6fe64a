package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"samebits/bridge/diag"
	"samebits/native/device"
)

// plan is a cuDNN engine that built and ran.
type plan struct {
	c, config unsafe.Pointer
	configs   *C.sb_configs // in the place of config, if no heuristic made it
	chosen    planChoice
	kept      bool // in the cache
	ran       bool
}

// free gives back what cuDNN holds for it.
func (p *plan) free(q *C.sb_queue) {
	C.sb_descriptor_free(q, p.c)
	C.sb_descriptor_free(q, p.config)
	if p.configs != nil {
		C.sb_configs_free(q, p.configs)
	}
}

func (w *preparation) convolution(i int, c *device.Convolution) error {
	at, err := w.addresses(c.X.Pointer, c.W.Pointer, c.Y.Pointer)
	if err != nil {
		return err
	}
	key, err := describeConvolution(c, at[0], at[1], at[2], w.options)
	if err != nil {
		return err
	}
	q := w.p.queue(i)
	var e C.sb_error
	if C.sb_queue_cudnn(q, &e) != 0 {
		return failure(&e)
	}
	places, err := w.onTrial(areaOf(c.X, at[0]), areaOf(c.W, at[1]), areaOf(c.Y, at[2]))
	if err != nil {
		return err
	}
	chosen := w.plans[key]
	if chosen != nil && w.firstOn(i, key) {
		if err := w.run(i, q, chosen, places); err != nil {
			if _, fatal := diag.Of(err); fatal || chosen.ran {
				return err
			}
			if chosen.kept {
				w.d.plans.drop(chosen.chosen, err)
			}
			chosen = nil // it was planned ahead: the next ones are tried
		}
	}
	if chosen == nil {
		if chosen, err = w.choosePlan(i, q, key, places); err != nil {
			return err
		}
		w.keepPlan(key, chosen)
		w.firstOn(i, key)
	}
	if !chosen.ran && !chosen.kept {
		w.d.plans.put(chosen.chosen)
	}
	chosen.ran = true
	w.need(i, chosen.chosen.Workspace)
	w.p.choices[i] = chosen.chosen.String()
	w.packs = append(w.packs, pendingPack{command: i, plan: chosen,
		x: C.sb_pointer(at[0]), w: C.sb_pointer(at[1]), y: C.sb_pointer(at[2])})
	return nil
}

func (w *preparation) keepPlan(key convolution, p *plan) {
	w.plans[key] = p
	w.p.plans = append(w.p.plans, p)
}

// planAhead takes the first plan that builds, and gives its workspace. What is wrong with a convolution is told later.
func (w *preparation) planAhead(c *device.Convolution) (int64, error) {
	at, err := w.addresses(c.X.Pointer, c.W.Pointer, c.Y.Pointer)
	if err != nil {
		return 0, nil
	}
	key, err := describeConvolution(c, at[0], at[1], at[2], w.options)
	if err != nil {
		return 0, nil
	}
	if w.plans[key] == nil {
		var e C.sb_error
		if C.sb_queue_cudnn(w.p.q, &e) != 0 {
			return 0, failure(&e)
		}
		chosen, err := w.choosePlan(-1, w.p.q, key, nil)
		if problems, ok := diag.Of(err); ok && problems[0].Reason == "NO_ENGINE" {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		w.keepPlan(key, chosen)
	}
	return w.plans[key].chosen.Workspace, nil
}

// choosePlan takes what the cache kept, or the first configuration that builds and runs: of the instant heuristic, else of
// the fallback list. Without addresses it runs none.
func (w *preparation) choosePlan(command int, q *C.sb_queue, key convolution, at []C.sb_pointer) (*plan, error) {
	if chosen, err := w.keptPlan(command, q, key, at); err != nil || chosen != nil {
		return chosen, err
	}
	var refused []string
	for _, mode := range []struct {
		name  string
		value C.int
	}{{"instant", C.SB_HEUR_INSTANT}, {"fallback", C.SB_HEUR_FALLBACK}} {
		chosen, why, err := w.firstOf(command, q, key, mode.name, mode.value, at)
		if err != nil || chosen != nil {
			return chosen, err
		}
		refused = append(refused, why...)
	}
	const shown = 6
	if len(refused) > shown {
		refused = append(refused[:shown], fmt.Sprintf("and %d more", len(refused)-shown))
	}
	return nil, diag.Problems{{
		Reason:  "NO_ENGINE",
		Summary: "no cuDNN engine computes this convolution",
		Detail:  strings.Join(refused, "; "),
	}}
}

func (w *preparation) firstOf(command int, q *C.sb_queue, key convolution, name string, mode C.int, at []C.sb_pointer) (*plan, []string, error) {
	var (
		e              C.sb_error
		configs        *C.sb_configs
		proposed, left C.int
		description    = key.toC()
	)
	if C.sb_convolution_configs(q, &description, mode, &configs, &proposed, &left, &e) != 0 {
		err := failure(&e)
		if isLost(err) {
			return nil, nil, err
		}
		return nil, []string{fmt.Sprintf("%s heuristic: %v", name, err)}, nil
	}
	defer C.sb_configs_free(q, configs)
	refused := []string{}
	for i := range int(left) {
		chosen, err := w.build(q, configs, i)
		if err == nil {
			err = w.tryPlan(command, q, chosen, at)
		}
		if err == nil {
			chosen.config = C.sb_configs_take(configs, C.int(i))
			chosen.chosen.Convolution = key.String()
			chosen.chosen.Heuristic = fmt.Sprintf("%s %d of %d, %d proposed", name, i+1, int(left), int(proposed))
			return chosen, nil, nil
		}
		if _, fatal := diag.Of(err); fatal {
			return nil, nil, err
		}
		refused = append(refused, fmt.Sprintf("%s %d: %v", name, i+1, err))
	}
	if left == 0 {
		refused = append(refused, fmt.Sprintf("%s: none of %d is left by the numerical notes", name, int(proposed)))
	}
	return nil, refused, nil
}

// keptPlan is the plan that the cache kept for a convolution, if it still is what it was: engine, knobs and workspace, and
// that it builds and runs. What is not is dropped there, and gives nil.
func (w *preparation) keptPlan(command int, q *C.sb_queue, key convolution, at []C.sb_pointer) (*plan, error) {
	kept, ok := w.d.plans.get(key.String())
	if !ok {
		return nil, nil
	}
	chosen, err := w.rebuild(q, key, kept)
	if err == nil {
		err = w.tryPlan(command, q, chosen, at)
	}
	if err == nil {
		return chosen, nil
	}
	if _, fatal := diag.Of(err); fatal {
		return nil, err
	}
	w.d.plans.drop(kept, err)
	return nil, nil
}

// rebuild makes the plan of a kept choice without asking a heuristic.
func (w *preparation) rebuild(q *C.sb_queue, key convolution, kept planChoice) (*plan, error) {
	engine, err := parseEngine(kept.Engine)
	if err != nil {
		return nil, err
	}
	var (
		e           C.sb_error
		configs     *C.sb_configs
		left        C.int
		description = key.toC()
		types       [C.SB_MAX_KNOBS]C.uint
		values      [C.SB_MAX_KNOBS]C.int64_t
	)
	for i, k := range engine.knobs {
		types[i], values[i] = C.uint(k.kind), C.int64_t(k.value)
	}
	if C.sb_convolution_config(q, &description, C.int64_t(engine.index), C.int(len(engine.knobs)), &types[0], &values[0],
		&configs, &left, &e) != 0 {
		return nil, failure(&e)
	}
	built, err := w.rebuilt(q, configs, int(left), engine, kept)
	if err != nil {
		C.sb_configs_free(q, configs)
		return nil, err
	}
	built.configs, built.chosen, built.kept = configs, kept, true
	return built, nil
}

// rebuilt builds the plan of the only configuration there is, if the notes left it, and compares it with the kept choice.
func (w *preparation) rebuilt(q *C.sb_queue, configs *C.sb_configs, left int, engine engine, kept planChoice) (*plan, error) {
	if left == 0 {
		return nil, errors.New("its numerical notes forbid it")
	}
	built, err := w.build(q, configs, 0)
	if err != nil {
		return nil, err
	}
	now, err := parseEngine(built.chosen.Engine)
	if err == nil && (!now.equal(engine) || built.chosen.Workspace != kept.Workspace) {
		err = fmt.Errorf("built anew it is %s with a workspace of %d", built.chosen.Engine, built.chosen.Workspace)
	}
	if err != nil {
		C.sb_descriptor_free(q, built.c)
		return nil, err
	}
	return built, nil
}

// build builds a configuration's plan.
func (w *preparation) build(q *C.sb_queue, configs *C.sb_configs, i int) (*plan, error) {
	var (
		e         C.sb_error
		c         unsafe.Pointer
		workspace C.int64_t
		tag       [C.SB_TAG]C.char
	)
	if C.sb_convolution_plan(q, configs, C.int(i), &c, &workspace, &tag[0], &e) != 0 {
		return nil, failure(&e)
	}
	return &plan{c: c, chosen: planChoice{Engine: C.GoString(&tag[0]), Workspace: int64(workspace)}}, nil
}

// tryPlan runs a plan once if there are addresses, and frees it if it does not run. A device that is lost or full is a
// problem; any other error only speaks against this plan.
func (w *preparation) tryPlan(command int, q *C.sb_queue, p *plan, at []C.sb_pointer) error {
	if at == nil {
		return nil
	}
	err := w.run(command, q, p, at)
	if err != nil {
		p.free(q)
	}
	return err
}

// run executes a plan once.
func (w *preparation) run(command int, q *C.sb_queue, p *plan, at []C.sb_pointer) error {
	var (
		e    C.sb_error
		pack unsafe.Pointer
	)
	scratch, err := w.trialWorkspace(command, p.chosen.Workspace)
	if err != nil {
		return err
	}
	if C.sb_convolution_pack(q, at[0], at[1], at[2], scratch, &pack, &e) != 0 {
		return failure(&e)
	}
	defer C.sb_descriptor_free(q, pack)
	if C.sb_convolution_run(q, p.c, pack, &e) != 0 {
		err = failure(&e)
	}
	if C.sb_queue_wait(q, &e) != 0 {
		err = failure(&e)
	}
	return err
}

func (w *preparation) pack(c pendingPack, workspace C.sb_pointer) error {
	var (
		e    C.sb_error
		pack unsafe.Pointer
	)
	if C.sb_convolution_pack(w.p.q, c.x, c.w, c.y, workspace, &pack, &e) != 0 {
		return diag.New("BAD_COMMAND", commandPath(c.command), "%s: %v", w.p.names[c.command], failure(&e))
	}
	C.sb_list_convolution(w.p.list, C.int(c.command), c.plan.c, pack)
	return nil
}
