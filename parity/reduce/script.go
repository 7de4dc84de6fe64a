package reduce

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the script
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/parity/gate"
)

//go:embed run.py
var script []byte

// Script is a program that runs a recording in PyTorch, with nothing of ours: it reads inputs.safetensors beside it and prints
// digests, and which side's they are.
func Script(r *recording.Recording, reference, native gate.Outputs) ([]byte, error) {
	type storage struct {
		Bytes int64  `json:"bytes"`
		Name  string `json:"name,omitempty"` // of what is given
	}
	type value struct {
		Storage   int     `json:"storage"`
		DType     string  `json:"dtype"`
		Sizes     []int64 `json:"sizes"`
		Strides   []int64 `json:"strides"`
		Offset    int64   `json:"offset"`
		Alignment uint32  `json:"alignment"`
	}
	type operation struct {
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
		Results   []any          `json:"results"`
		From      string         `json:"from"`
	}
	var b bytes.Buffer
	list := func(name string, n int, item func(i int) any) error {
		fmt.Fprintf(&b, "  %q: [\n", name)
		for i := range n {
			data, err := plain(item(i))
			if err != nil {
				return err
			}
			comma := ","
			if i == n-1 {
				comma = ""
			}
			fmt.Fprintf(&b, "    %s%s\n", data, comma)
		}
		b.WriteString("  ],\n")
		return nil
	}
	b.WriteString("{\n")
	for _, l := range []struct {
		name string
		n    int
		item func(i int) any
	}{
		{"settings", len(r.Header.ProfileSettings), func(i int) any {
			s := r.Header.ProfileSettings[i]
			return [2]string{s.Key, s.Value}
		}},
		{"storages", len(r.Storages), func(i int) any {
			s := r.Storages[i]
			if s.Role != recording.Input && !s.Role.Weight() {
				s.Name = ""
			}
			return storage{s.Bytes, s.Name}
		}},
		{"values", len(r.Values), func(i int) any {
			v := r.Values[i]
			return value{v.Storage, v.DType.String(), orEmpty(v.Sizes), orEmpty(v.Strides), v.Offset, v.Alignment}
		}},
		{"operations", len(r.Operations), func(i int) any {
			o := &r.Operations[i]
			named := map[string]any{}
			for j := range o.Arguments {
				named[o.Arguments[j].Name] = argument(&o.Arguments[j])
			}
			results := []any{}
			for j := range o.Results {
				results = append(results, argument(&o.Results[j]))
			}
			return operation{o.Name, named, results, strings.TrimSpace(o.Module + " " + o.Source)}
		}},
		{"outputs", len(r.Outputs), func(i int) any { return []any{r.Outputs[i].Name, r.Outputs[i].Value} }},
	} {
		if err := list(l.name, l.n, l.item); err != nil {
			return nil, err
		}
	}
	data, err := plain(map[string]any{"reference": sums(reference), "native": sums(native)})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "  \"expected\": %s,\n  \"device\": %q\n}", data, r.Header.DeviceType)
	// The text stands in a raw Python string.
	if text := b.String(); strings.Contains(text, `'''`) {
		return nil, fmt.Errorf("reduce: a name has three quotes")
	}
	return bytes.Replace(script, []byte("STEP_GOES_HERE"), b.Bytes(), 1), nil
}

func plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

func orEmpty(list []int64) []int64 { return append([]int64{}, list...) }

// argument is an argument as the script reads it.
func argument(a *recording.Argument) any {
	switch a.Kind {
	case recording.ValueOf:
		return map[string]any{"value": a.Value}
	case recording.Boolean:
		return a.Bool
	case recording.Integer:
		return a.Int
	case recording.Real:
		return map[string]any{"real": strconv.FormatFloat(a.Real, 'x', -1, 64)}
	case recording.Text:
		return a.Text
	case recording.List:
		items := []any{}
		for i := range a.Items {
			items = append(items, argument(&a.Items[i]))
		}
		return items
	case recording.DTypeOf:
		return map[string]any{"dtype": a.DType.String()}
	case recording.MemoryFormat:
		return map[string]any{"memory_format": a.Text}
	case recording.Layout:
		return map[string]any{"layout": a.Text}
	case recording.Device:
		return map[string]any{"device": a.Text}
	}
	return nil
}

// sums are the SHA-256 of outputs, of the very bytes whose BLAKE3 is their digest: Python has no BLAKE3.
func sums(outputs gate.Outputs) map[string]string {
	all := map[string]string{}
	for _, o := range outputs {
		sum := sha256.Sum256(append(digest.Header(o.Spec), o.Data...))
		all[o.Name] = hex.EncodeToString(sum[:])
	}
	return all
}
