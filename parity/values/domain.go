package values

import (
	"slices"
	"strings"

	"samebits/bridge/recording"
)

// Domain is what may stand in one tensor. The zero Domain is anything.
type Domain struct {
	Index     int64   // whole numbers from 0 below it
	Negative  bool    // and such as count from the end
	Also      []int64 // and these, where edges are asked for
	Low, High float64 // numbers from Low below High, always finite: coordinates, on which addresses depend
	NonZero   bool    // whole numbers that one may divide by
	Positive  bool    // ordinary numbers are positive; edges are not
	NoNaN     bool    // infinities stand in for NaNs
	// Place gives the element at an index, for what depends on where it stands.
	Place func(at []int64) int64
}

// any reports whether d is the zero Domain.
func (d *Domain) any() bool {
	return d.Index == 0 && d.High <= d.Low && !d.NonZero && !d.Positive && !d.NoNaN && d.Place == nil
}

// Domains gives the domain of every value that an operation takes and that must not hold just anything: indices must be
// in range, variances positive, coordinates near the image.
func Domains(r *recording.Recording, op *recording.Operation) map[int]Domain {
	x := &domains{r: r, op: op, found: map[int]Domain{}}
	name, _, _ := strings.Cut(op.Name, ".")
	if find := byOperation[name]; find != nil {
		find(x)
	}
	for _, argument := range []string{"running_var", "save_invstd", "save_var", "rstd"} {
		x.set(argument, Domain{Positive: true})
	}
	return x.found
}

type domains struct {
	r     *recording.Recording
	op    *recording.Operation
	found map[int]Domain
}

func (x *domains) value(argument string) (*recording.Value, int, bool) {
	a, ok := x.op.Arg(argument)
	if !ok || a.Kind != recording.ValueOf {
		return nil, 0, false
	}
	return &x.r.Values[a.Value], a.Value, true
}

func (x *domains) set(argument string, d Domain) {
	if _, i, ok := x.value(argument); ok && !d.any() {
		x.found[i] = d
	}
}

// size is the extent of an argument along a dimension, which may count from the end; 0 if there is none.
func (x *domains) size(argument string, dim int64) int64 {
	v, _, ok := x.value(argument)
	if !ok {
		return 0
	}
	if dim < 0 {
		dim += int64(len(v.Sizes))
	}
	if len(v.Sizes) == 0 && dim == 0 {
		return 1
	}
	if dim < 0 || dim >= int64(len(v.Sizes)) {
		return 0
	}
	return v.Sizes[dim]
}

func (x *domains) integer(argument string) int64 {
	if a, ok := x.op.Arg(argument); ok && a.Kind == recording.Integer {
		return a.Int
	}
	return 0
}

func (x *domains) integers(argument string) []int64 {
	var list []int64
	if a, ok := x.op.Arg(argument); ok && a.Kind == recording.List {
		for i := range a.Items {
			list = append(list, a.Items[i].Int)
		}
	}
	return list
}

// byOperation holds what is special of operations, by their names without overload.
var byOperation = map[string]func(*domains){
	"aten::embedding":      func(x *domains) { x.set("indices", Domain{Index: x.size("weight", 0)}) },
	"aten::gather":         alongDim,
	"aten::scatter":        alongDim,
	"aten::scatter_":       alongDim,
	"aten::scatter_add":    alongDim,
	"aten::scatter_add_":   alongDim,
	"aten::index_select":   alongDim,
	"aten::index_add":      alongDim,
	"aten::index_add_":     alongDim,
	"aten::index_copy":     alongDim,
	"aten::index_copy_":    alongDim,
	"aten::take_along_dim": alongDim,
	"aten::index":          byIndices,
	"aten::index_put":      byIndices,
	"aten::index_put_":     byIndices,

	"aten::nll_loss_forward":    labels,
	"aten::nll_loss_backward":   labels,
	"aten::nll_loss2d_forward":  labels,
	"aten::nll_loss2d_backward": labels,

	"aten::max_pool2d_with_indices_backward": pooled,

	"aten::grid_sampler_2d":       func(x *domains) { x.set("grid", Domain{Low: -1.125, High: 1.125}) },
	"aten::grid_sampler_3d":       func(x *domains) { x.set("grid", Domain{Low: -1.125, High: 1.125}) },
	"aten::grid_sampler_backward": func(x *domains) { x.set("grid", Domain{Low: -1.125, High: 1.125}) },
	"torchvision::deform_conv2d":  func(x *domains) { x.set("offset", Domain{Low: -3, High: 3}) },

	"aten::div": divisor, "aten::div_": divisor, "aten::floor_divide": divisor, "aten::remainder": divisor,
	"aten::remainder_": divisor, "aten::fmod": divisor,

	"aten::bitwise_left_shift": amount, "aten::bitwise_right_shift": amount,

	"aten::log": positive, "aten::log2": positive, "aten::log10": positive, "aten::log1p": positive, "aten::sqrt": positive,
	"aten::sqrt_": positive, "aten::rsqrt": positive, "aten::pow": base, "aten::log_": positive,
	"aten::acos": unit, "aten::asin": unit,
}

func alongDim(x *domains) { x.set("index", Domain{Index: x.size("self", x.integer("dim"))}) }

func byIndices(x *domains) {
	a, ok := x.op.Arg("indices")
	if !ok || a.Kind != recording.List {
		return
	}
	for dim := range a.Items {
		item := &a.Items[dim]
		if n := x.size("self", int64(dim)); item.Kind == recording.ValueOf && n > 0 {
			d := Domain{Index: n, Negative: true}
			if known, twice := x.found[item.Value]; twice && known.Index < n {
				d = known
			}
			x.found[item.Value] = d
		}
	}
}

// labels are classes: the second dimension of a batch, the only one of a single row.
func labels(x *domains) {
	dim := int64(1)
	if v, _, ok := x.value("self"); ok && len(v.Sizes) == 1 {
		dim = 0
	}
	x.set("target", Domain{Index: x.size("self", dim), Also: []int64{x.integer("ignore_index")}})
	x.set("total_weight", Domain{Low: 1, High: 8})
}

// pooled gives indices as pooling could have made them: of the first pixel of each window.
func pooled(x *domains) {
	v, _, ok := x.value("self")
	kernel, stride, padding := x.integers("kernel_size"), x.integers("stride"), x.integers("padding")
	if !ok || len(v.Sizes) < 2 || len(kernel) == 0 {
		return
	}
	width := v.Sizes[len(v.Sizes)-1]
	if len(stride) == 0 {
		stride = kernel
	}
	pick := func(list []int64, i int) int64 {
		if len(list) == 0 {
			return 0
		}
		return list[min(i, len(list)-1)]
	}
	x.set("indices", Domain{Place: func(at []int64) int64 {
		n := len(at)
		row := max(at[n-2]*pick(stride, 0)-pick(padding, 0), 0)
		column := max(at[n-1]*pick(stride, 1)-pick(padding, 1), 0)
		return row*width + column
	}})
}

func divisor(x *domains) { x.set("other", Domain{NonZero: true}) }

func amount(x *domains) { x.set("other", Domain{Low: 0, High: 8}) }

func positive(x *domains) { x.set("self", Domain{Positive: true}) }

func unit(x *domains) { x.set("self", Domain{Low: -1, High: 1}) }

// base of a power: positive if numbers may be raised to a fraction; whole exponents are small.
func base(x *domains) {
	x.set("self", Domain{Positive: true})
	if v, _, ok := x.value("exponent"); ok && !v.DType.Float() {
		x.set("exponent", Domain{Low: 0, High: 4})
	}
}

// Of gives the one domain of a storage on which several values lie: the narrowest.
func Of(domains map[int]Domain, values []int) Domain {
	var all []Domain
	for _, v := range values {
		if d, ok := domains[v]; ok {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return Domain{}
	}
	return slices.MinFunc(all, func(a, b Domain) int {
		if a.Index != b.Index && a.Index > 0 && b.Index > 0 {
			return int(a.Index - b.Index)
		}
		return 0
	})
}
