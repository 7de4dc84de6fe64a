package suitetest

import (
	"encoding/binary"
	"fmt"
	"slices"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// Seamed is a family whose step is a segment: behind it, final = 2 * logits + features. Keyed and KeyedToo are two keys of
// one family: the first number of the input grids is added to the logits, and the host reads it.
const (
	Seamed   = "seamed"
	Keyed    = "keyed"
	KeyedToo = "keyed@too"
)

// Further are the faults of families with a seam or with keys.
type Further struct {
	RestDiffers     bool // what comes behind the segment is not what the whole forward has there
	WholeNoise      bool // the whole forward differs from step to step
	KeyOfFirst      bool // every replay has the key of the first bank
	SecondSpoiled   bool // the second graph reads what the first wrote
	OneGraph        bool // there is a graph for one key only
	StrangerReplays bool // a key that has no graph is replayed like the first
	StrangerCounts  bool // a key that has no graph runs eagerly and is counted as a replay
	OtherWeights    bool // the two keys are of models with other weights
}

var keyNumbers = map[string][]int64{Keyed: {2, 3}, KeyedToo: {1, 6}}

func grids() tensor.Spec {
	return tensor.Spec{Name: "grids", DType: tensor.Int64, Sizes: []int64{1, 2}}
}

func final() tensor.Spec {
	return tensor.Spec{Name: "final", DType: tensor.Float32, Sizes: images().Sizes}
}

func (a *fakeArm) furtherBuild(r arm.BuildReply) arm.BuildReply {
	switch a.family {
	case Seamed:
		r.Segment, r.Rest = "half", true
		if a.name == arm.ReferenceRest {
			r.Inputs = append(r.Inputs, a.specs()...)
		}
	case Keyed:
		r.Others = []arm.Other{{Family: KeyedToo}}
	case KeyedToo:
		r.Others = []arm.Other{{Family: Keyed}}
		if a.OtherWeights {
			a.weights[0] = 7
		}
	}
	return r
}

// furtherLoad says what else a loaded model takes and gives. A recording is added to those that are there, or takes their place.
func (a *fakeArm) furtherLoad(r arm.LoadReply, added bool) arm.LoadReply {
	if !added {
		a.keys = nil
	}
	if a.name == arm.ReferenceWhole || a.name == arm.ReferenceRest {
		r.Outputs = []tensor.Spec{final()}
	}
	if numbers, keyed := keyNumbers[a.family]; keyed && a.kind == "native" {
		a.keys = append(a.keys, numbers[0])
		r.Inputs = append(r.Inputs, grids())
	}
	return r
}

func (a *fakeArm) addKey(r *recording.Recording) {
	numbers, keyed := keyNumbers[a.family]
	if !keyed {
		return
	}
	r.Storages = append(r.Storages, recording.Storage{Bytes: 16, Role: recording.Input, Name: "grids", DType: tensor.Int64})
	r.Values = append(r.Values, recording.Value{Storage: len(r.Storages) - 1, DType: tensor.Int64, Sizes: []int64{1, 2}, Strides: []int64{2, 1}, Alignment: 512})
	r.Inputs = append(r.Inputs, recording.Named{Name: "grids", Value: len(r.Values) - 1})
	r.Header.ProfileSettings = []recording.Setting{{Key: "key.grids", Value: fmt.Sprint(numbers[0], " ", numbers[1])}}
}

// key is the first number of an input bank's key, or that of what was built.
func (a *fakeArm) key(bank arm.Bank) int64 {
	if i := slices.IndexFunc(bank, func(p arm.Placed) bool { return p.Name == "grids" }); i >= 0 {
		return int64(binary.LittleEndian.Uint64(a.at(bank[i].Region)))
	}
	return keyNumbers[a.family][0]
}

// countGraphs captures a graph for each key among the banks.
func (a *fakeArm) countGraphs() int64 {
	if keyNumbers[a.family] == nil {
		return 1
	}
	if a.kind == "reference" {
		for _, bank := range a.banks.Inputs {
			if key := a.key(bank); !slices.Contains(a.keys, key) {
				a.keys = append(a.keys, key)
			}
		}
	}
	if a.OneGraph {
		return 1
	}
	return int64(len(a.keys))
}

// chosen is what a step's key does to it.
type chosen struct {
	shift    float32
	stranger bool // there is no graph for it
}

func (a *fakeArm) choose(input int) (chosen, error) {
	if keyNumbers[a.family] == nil {
		return chosen{}, nil
	}
	key := a.key(a.banks.Inputs[input])
	graph := a.banks.CUDAGraph
	switch known := slices.Contains(a.keys, key); {
	case a.KeyOfFirst && graph:
		return chosen{shift: float32(a.keys[0])}, nil
	case a.SecondSpoiled && graph && key != a.keys[0]:
		return chosen{shift: float32(key + a.keys[0])}, nil
	case known || a.kind == "reference" && !graph:
		return chosen{shift: float32(key)}, nil
	case a.StrangerReplays:
		return chosen{shift: float32(a.keys[0])}, nil
	case a.StrangerCounts:
		return chosen{shift: float32(key)}, nil
	case a.kind == "native":
		return chosen{}, diag.New(recording.OtherKey, "inputs/grids", "it holds %d", key)
	default:
		return chosen{shift: float32(key), stranger: true}, nil
	}
}

// stepOverSeam runs the whole forward, or what comes behind the segment.
func (a *fakeArm) stepOverSeam(x []float32, input, output int) error {
	features, logits := a.compute(x, false)
	if a.name == arm.ReferenceRest {
		bank := a.banks.Inputs[input]
		features, logits = parse(a.at(bank[1].Region)), parse(a.at(bank[2].Region))
	}
	result := make([]float32, len(logits))
	for i := range result {
		result[i] = 2*logits[i] + features[i]
	}
	if a.RestDiffers && a.name == arm.ReferenceRest {
		result[3]++
	}
	if a.WholeNoise && a.name == arm.ReferenceWhole {
		result[3] += float32(a.steps)
	}
	copy(a.at(a.banks.Outputs[output][0].Region), floats(result))
	return nil
}
