package ops

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

const (
	casesFolder   = "../../goldens/ops/cases"
	goldensFolder = "../../goldens/ops/h200"
)

// opCase is an operation case of goldens/ops.
type opCase struct {
	Name      string
	Operation string
	Exact     bool `json:"exact_on_host"`
	Arguments [][2]json.RawMessage
	Results   []json.RawMessage
	Writes    []string // arguments that the operation changes though its schema does not say so
	digest    string
}

// caseTensor is a tensor of a case.
type caseTensor struct {
	DType   string
	Sizes   []int64
	Strides []int64
	Offset  int64
	Fill    string
	Seed    uint64
}

// golden is what PyTorch computed for a case.
type golden struct {
	Case    string
	Results []string
}

// eachFile decodes every JSON file of a folder into a value of its own.
func eachFile[T any](t *testing.T, folder string, see func(T)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files: %v", folder, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file T
		if err := json.Unmarshal(data, &file); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		see(file)
	}
}

func readCases(t *testing.T) []opCase {
	t.Helper()
	var cases []opCase
	eachFile(t, casesFolder, func(file struct{ Cases []json.RawMessage }) {
		for _, text := range file.Cases {
			c := opCase{digest: digest.Bytes(text)}
			if err := json.Unmarshal(text, &c); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			cases = append(cases, c)
		}
	})
	return cases
}

// readGoldens gives what was recorded on a GPU, by name.
func readGoldens(t *testing.T) map[string]golden {
	t.Helper()
	goldens := map[string]golden{}
	eachFile(t, goldensFolder, func(file struct{ Results map[string]golden }) { maps.Copy(goldens, file.Results) })
	return goldens
}

// place puts a case on a bench.
func (c *opCase) place(b *bench) (recording.Operation, error) {
	op := recording.Operation{Name: c.Operation}
	for _, pair := range c.Arguments {
		a, err := placeArgument(b, pair[1])
		if err != nil {
			return op, err
		}
		if err := json.Unmarshal(pair[0], &a.Name); err != nil {
			return op, err
		}
		op.Arguments = append(op.Arguments, a)
	}
	for _, text := range c.Results {
		if string(text) == "null" {
			op.Results = append(op.Results, argument(nil))
			continue
		}
		var name string
		if json.Unmarshal(text, &name) == nil {
			v, err := ValueArg(&op, name)
			if err != nil {
				return op, err
			}
			op.Results = append(op.Results, argument(v))
			continue
		}
		var spec caseTensor
		if err := json.Unmarshal(text, &spec); err != nil {
			return op, err
		}
		dtype, err := tensor.ParseDType(spec.DType)
		if err != nil {
			return op, err
		}
		op.Results = append(op.Results, argument(b.tensor(dtype, spec.Sizes, spec.Strides)))
	}
	return op, nil
}

func placeArgument(b *bench, text json.RawMessage) (recording.Argument, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return recording.Argument{}, err
	}
	switch v := v.(type) {
	case nil, bool:
		return argument(v), nil
	case string:
		return argument(words(v)), nil
	case json.Number:
		if strings.ContainsAny(v.String(), ".e") {
			f, err := v.Float64()
			return argument(f), err
		}
		n, err := v.Int64()
		return argument(n), err
	case []any:
		var items []json.RawMessage
		if err := json.Unmarshal(text, &items); err != nil {
			return recording.Argument{}, err
		}
		list := recording.Argument{Kind: recording.List}
		for _, item := range items {
			a, err := placeArgument(b, item)
			if err != nil {
				return list, err
			}
			list.Items = append(list.Items, a)
		}
		return list, nil
	}
	var object struct {
		As, Real     string
		MemoryFormat string `json:"memory_format"`
		caseTensor
	}
	if err := json.Unmarshal(text, &object); err != nil {
		return recording.Argument{}, err
	}
	switch {
	case object.As != "":
		dtype, err := tensor.ParseDType(object.As)
		return argument(dtype), err
	case object.Real != "":
		f, err := strconv.ParseFloat(object.Real, 64)
		return argument(f), err
	case object.MemoryFormat != "":
		return argument(object.MemoryFormat), nil
	}
	return object.caseTensor.place(b)
}

// place adds an input and fills its whole buffer.
func (s *caseTensor) place(b *bench) (recording.Argument, error) {
	dtype, err := tensor.ParseDType(s.DType)
	if err != nil {
		return recording.Argument{}, err
	}
	strides := s.Strides
	if strides == nil {
		strides = tensor.ContiguousStrides(s.Sizes)
	}
	v := b.tensorAt(dtype, s.Sizes, strides, s.Offset)
	buffer, size := b.bytes[b.recording.Values[v].Storage], int(dtype.Size())
	for i := range len(buffer) / size {
		bits, err := fill(dtype, s.Fill, s.Seed, uint64(i))
		if err != nil {
			return recording.Argument{}, err
		}
		putBits(buffer[i*size:][:size], bits)
	}
	return argument(v), nil
}

// digest names what a value holds.
func (b *bench) digest(value int) string {
	v := &b.recording.Values[value]
	return digest.Tensor(tensor.Spec{DType: v.DType, Sizes: v.Sizes}, bytes.Join(b.element(value), nil))
}

// runCases runs every case, and compares those that compare chooses with what PyTorch computed on a GPU.
func runCases(t *testing.T, compare func(*opCase) bool) {
	goldens := readGoldens(t)
	for _, c := range readCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			b := newBench(t)
			op, err := c.place(b)
			if err != nil {
				t.Fatal(err)
			}
			b.run(op)
			g, ok := goldens[c.Name]
			if !ok || !compare(&c) {
				return
			}
			if err := c.check(b, &op, g); err != nil {
				t.Error(err)
			}
		})
	}
}

func (c *opCase) check(b *bench, op *recording.Operation, g golden) error {
	if g.Case != c.digest {
		return fmt.Errorf("%s was made for another version of this case: write it again as goldens/ops/README.md says", goldensFolder)
	}
	values := recording.Values(op.Results, nil)
	for _, name := range c.Writes {
		v, err := ValueArg(op, name)
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	if len(values) != len(g.Results) {
		return fmt.Errorf("%d results, PyTorch had %d", len(values), len(g.Results))
	}
	for i, v := range values {
		if got := b.digest(v); got != g.Results[i] {
			return fmt.Errorf("result %d has other bits than PyTorch's: %s, wanted %s", i, got, g.Results[i])
		}
	}
	return nil
}

// Every case runs; those of exactly rounded operations have the GPU's bits on the host too.
func TestCases(t *testing.T) {
	if os.Getenv("SAMEBITS_TEST_DEVICE") != "" {
		t.Skip("this test is for the host")
	}
	runCases(t, func(c *opCase) bool { return c.Exact })
}

// Names are unique, and every operation is one that is done.
func TestCasesFile(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range readCases(t) {
		if seen[c.Name] {
			t.Errorf("two cases are called %s", c.Name)
		}
		seen[c.Name] = true
		if _, ok := Lookup(c.Operation); !ok {
			t.Errorf("%s: no operation %s", c.Name, c.Operation)
		}
	}
	for name, g := range readGoldens(t) {
		if !seen[name] || len(g.Results) == 0 {
			t.Errorf("%s: %s is no case with results", goldensFolder, name)
		}
	}
}
