package ops

import (
	"fmt"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// operation makes an operation.
func operation(name string, arguments []recording.Argument, results []recording.Argument) recording.Operation {
	return recording.Operation{Name: name, Arguments: arguments, Results: results}
}

// args makes arguments from names and what follows each: an int is a value; int64, float64, bool and nil stand for
// themselves; []int64 is a list of integers, []int one of values; tensor.DType is a dtype, string a memory format, words a
// text.
func args(pairs ...any) []recording.Argument {
	var list []recording.Argument
	for i := 0; i < len(pairs); i += 2 {
		a := argument(pairs[i+1])
		a.Name = pairs[i].(string)
		list = append(list, a)
	}
	return list
}

// words are an argument that is a text.
type words string

func argument(v any) recording.Argument {
	switch v := v.(type) {
	case nil:
		return recording.Argument{Kind: recording.None}
	case int:
		return recording.Argument{Kind: recording.ValueOf, Value: v}
	case int64:
		return recording.Argument{Kind: recording.Integer, Int: v}
	case float64:
		return recording.Argument{Kind: recording.Real, Real: v}
	case bool:
		return recording.Argument{Kind: recording.Boolean, Bool: v}
	case tensor.DType:
		return recording.Argument{Kind: recording.DTypeOf, DType: v}
	case words:
		return recording.Argument{Kind: recording.Text, Text: string(v)}
	case string:
		return recording.Argument{Kind: recording.MemoryFormat, Text: v}
	case []int64:
		a := recording.Argument{Kind: recording.List}
		for _, n := range v {
			a.Items = append(a.Items, argument(n))
		}
		return a
	case []int:
		a := recording.Argument{Kind: recording.List}
		for _, n := range v {
			a.Items = append(a.Items, argument(n))
		}
		return a
	}
	panic(fmt.Sprintf("argument of type %T", v))
}

// results makes one result a value.
func results(values ...int) []recording.Argument {
	var list []recording.Argument
	for _, v := range values {
		list = append(list, argument(v))
	}
	return list
}
