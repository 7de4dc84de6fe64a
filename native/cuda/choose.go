package cuda

/*
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"strings"
	"unsafe"

	"samebits/bridge/diag"
	"samebits/native/device"
)

// plan is a cuDNN engine that built and ran.
type plan struct {
	c, config unsafe.Pointer
	workspace int64
	choice    string
	ran       bool
}

// chosenLinear is what cuBLASLt's heuristic answered for a signature.
type chosenLinear struct {
	c      C.sb_linear // without descriptors
	choice string
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
	chosen.ran = true
	w.need(i, chosen.workspace)
	w.p.choices[i] = chosen.choice
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
	return w.plans[key].workspace, nil
}

// choosePlan takes the first configuration that builds and runs: of the instant heuristic, else of the fallback list.
// Without addresses it runs none.
func (w *preparation) choosePlan(command int, q *C.sb_queue, key convolution, at []C.sb_pointer) (*plan, error) {
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
		chosen, err := w.try(command, q, configs, i, at)
		if err == nil {
			chosen.config = C.sb_configs_take(configs, C.int(i))
			chosen.choice = fmt.Sprintf("%s workspace=%d %s %d of %d, %d proposed", chosen.choice, chosen.workspace, name,
				i+1, int(left), int(proposed))
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

// try builds a configuration's plan and runs it once. A device that is lost or full is a problem; any other error only
// speaks against this configuration.
func (w *preparation) try(command int, q *C.sb_queue, configs *C.sb_configs, i int, at []C.sb_pointer) (*plan, error) {
	var (
		e         C.sb_error
		c         unsafe.Pointer
		workspace C.int64_t
		tag       [C.SB_TAG]C.char
	)
	if C.sb_convolution_plan(q, configs, C.int(i), &c, &workspace, &tag[0], &e) != 0 {
		return nil, failure(&e)
	}
	built := &plan{c: c, workspace: int64(workspace), choice: C.GoString(&tag[0])}
	if at == nil {
		return built, nil
	}
	if err := w.run(command, q, built, at); err != nil {
		C.sb_descriptor_free(q, c)
		return nil, err
	}
	return built, nil
}

// run executes a plan once.
func (w *preparation) run(command int, q *C.sb_queue, p *plan, at []C.sb_pointer) error {
	var (
		e    C.sb_error
		pack unsafe.Pointer
	)
	scratch, err := w.trialWorkspace(command, p.workspace)
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

func (w *preparation) batchNorm(i int, b *device.BatchNorm) error {
	at, err := w.addresses(b.X.Pointer, b.Y.Pointer, b.Scale.Pointer, b.Bias.Pointer, b.Mean.Pointer, b.Variance.Pointer)
	if err != nil {
		return err
	}
	key, err := describeBatchNorm(b)
	if err != nil {
		return err
	}
	var e C.sb_error
	q := w.p.queue(i)
	if C.sb_queue_cudnn(q, &e) != 0 {
		return failure(&e)
	}
	c := key.toC()
	if C.sb_batch_norm_open(q, &c, &e) != 0 {
		return failure(&e)
	}
	if w.firstOn(i, key) {
		if err := w.tryBatchNorm(q, c, b, at); err != nil {
			C.sb_batch_norm_close(q, &c)
			return err
		}
	}
	setBatchNorm(&c, at[0], at[1], at[2], at[3], at[4], at[5])
	C.sb_list_batch_norm(w.p.list, C.int(i), &c)
	w.p.choices[i] = "cudnnBatchNormalizationForwardInference"
	return nil
}

// tryBatchNorm runs on whatever there is; the four parameters may share it.
func (w *preparation) tryBatchNorm(q *C.sb_queue, c C.sb_batch_norm, b *device.BatchNorm, at []uint64) error {
	places, err := w.onTrial(areaOf(b.X, at[0]), areaOf(b.Y, at[1]), areaOf(b.Scale, at[2]))
	if err != nil {
		return err
	}
	parameter := uint64(places[2])
	setBatchNorm(&c, uint64(places[0]), uint64(places[1]), parameter, parameter, parameter, parameter)
	var e C.sb_error
	if C.sb_batch_norm_run(q, &c, &e) != 0 || C.sb_queue_wait(q, &e) != 0 {
		return failure(&e)
	}
	return nil
}

func setBatchNorm(c *C.sb_batch_norm, x, y, scale, bias, mean, variance uint64) {
	c.x, c.y = C.sb_pointer(x), C.sb_pointer(y)
	c.scale, c.bias = C.sb_pointer(scale), C.sb_pointer(bias)
	c.mean, c.variance = C.sb_pointer(mean), C.sb_pointer(variance)
}

func (w *preparation) linear(i int, l *device.Linear) error {
	bias := l.Bias
	if bias.Sizes == nil { // what the product is added to is d, and PyTorch tells a null pointer's alignment
		bias = l.D
	}
	at, err := w.addresses(l.A.Pointer, l.B.Pointer, bias.Pointer, l.D.Pointer)
	if err != nil {
		return err
	}
	if l.Bias.Sizes == nil {
		at[2] = 0
	}
	key, err := describeLinear(l, at[0], at[1], at[2], at[3], w.options)
	if err != nil {
		return err
	}
	var e C.sb_error
	q := w.p.queue(i)
	if C.sb_queue_cublas(q, &e) != 0 {
		return failure(&e)
	}
	if w.firstOn(i, key) {
		chosen, err := w.tryLinear(i, q, key, areaOf(l.B, at[1]), areaOf(l.A, at[0]), areaOf(bias, at[2]), areaOf(l.D, at[3]))
		if err != nil {
			return err
		}
		w.linears[key] = chosen
	}
	chosen := w.linears[key]
	w.need(i, linearWorkspace)
	c := key.toC()
	c.a, c.b, c.bias, c.d = C.sb_pointer(at[1]), C.sb_pointer(at[0]), C.sb_pointer(at[2]), C.sb_pointer(at[3])
	w.p.choices[i] = chosen.choice
	w.products = append(w.products, pendingLinear{command: i, c: c, choice: chosen})
	return nil
}

// tryLinear asks the heuristic, unless another lane did, and runs its answer once.
func (w *preparation) tryLinear(command int, q *C.sb_queue, key linear, areas ...area) (*chosenLinear, error) {
	places, err := w.onTrial(areas...)
	if err != nil {
		return nil, err
	}
	workspace, err := w.trialWorkspace(command, linearWorkspace)
	if err != nil {
		return nil, err
	}
	c := key.toC()
	c.a, c.b, c.bias, c.d, c.workspace = places[0], places[1], places[2], places[3], workspace
	var (
		e   C.sb_error
		tag [C.SB_TAG]C.char
	)
	var like *C.sb_linear
	if chosen := w.linears[key]; chosen != nil {
		answer := chosen.c // C may not see the Go string beside it
		like = &answer
	}
	if C.sb_linear_open(q, &c, like, &tag[0], &e) != 0 {
		return nil, failure(&e)
	}
	defer C.sb_linear_close(q, &c)
	if C.sb_linear_run(q, &c, &e) != 0 || C.sb_queue_wait(q, &e) != 0 {
		return nil, failure(&e)
	}
	return &chosenLinear{c: C.sb_linear{algo: c.algo}, choice: C.GoString(&tag[0])}, nil
}

func (w *preparation) product(p pendingLinear, workspace C.sb_pointer) error {
	var (
		e   C.sb_error
		tag [C.SB_TAG]C.char
	)
	p.c.workspace = workspace
	if C.sb_linear_open(w.p.q, &p.c, &p.choice.c, &tag[0], &e) != 0 {
		return diag.New("BAD_COMMAND", commandPath(p.command), "linear: %v", failure(&e))
	}
	C.sb_list_linear(w.p.list, C.int(p.command), &p.c)
	return nil
}
