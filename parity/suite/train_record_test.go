package suite

import (
	"slices"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// Weights decay that are more than a number a channel; biases and the weights of normalisation do not.
func TestReadGroups(t *testing.T) {
	of := func(name string, sizes ...int64) tensor.Spec { return tensor.Spec{Name: name, Sizes: sizes} }
	outputs := []tensor.Spec{of("loss"), of("param.conv.weight", 4, 3, 3, 3), of("param.conv.bias", 4), of("param.bn.weight", 4), of("param.bn.bias", 4),
		of("param.fc.weight", 2, 4), of("param.table.bias", 2, 2), of("momentum.bn.weight", 4, 4)}
	read := func(groups string) ([]bool, error) {
		settings := []recording.Setting{{Key: "tf32", Value: "off"}, {Key: "train.groups", Value: groups}}
		return readGroups(&recording.Recording{Header: recording.Header{ProfileSettings: settings}}, outputs)
	}
	for groups, want := range map[string][]bool{
		`[["bn.weight"], ["conv.weight", "fc.weight"], ["conv.bias", "bn.bias"]]`: {false, true, false},
		`[["conv.weight", "bn.weight"], ["conv.weight", "conv.bias"]]`:            {true, false},
		`[["table.bias"], []]`: {false, false},
		`[]`:                   {},
	} {
		if got, err := read(groups); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v instead of %v, %v", groups, got, want, err)
		}
	}
	_, err := readGroups(&recording.Recording{}, outputs)
	_, err2 := read(`"conv.weight"`)
	for what, err := range map[string]error{"no groups": err, "no lists": err2} {
		if problems, _ := diag.Of(err); len(problems) != 1 || problems[0].Reason != "WRONG_RECORDING" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
