package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
)

// file puts a header and data together as they stand in a file.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// every returns one tensor of each dtype, in no order of the format.
func every() []safetensors.Tensor {
	var all []safetensors.Tensor
	for i, d := range []tensor.DType{tensor.Bool, tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
		tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
		data := bytes.Repeat([]byte{byte(i)}, int(3*d.Size()))
		if d == tensor.Bool {
			data = []byte{1, 0, 1}
		}
		all = append(all, safetensors.Tensor{Spec: tensor.Spec{Name: "t." + d.String(), DType: d, Sizes: []int64{3, 1}}, Data: data})
	}
	return append(all,
		safetensors.Tensor{Spec: tensor.Spec{Name: "scalar <&> \"ü\"", DType: tensor.Int32}, Data: []byte{1, 2, 3, 4}},
		safetensors.Tensor{Spec: tensor.Spec{Name: "empty", DType: tensor.Float32, Sizes: []int64{2, 0}}, Data: []byte{}})
}

func TestRoundTrip(t *testing.T) {
	metadata := map[string]string{"seasoning": "b", "a": "1"}
	encoded, err := safetensors.Encode(every(), metadata)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f.Metadata, metadata) {
		t.Errorf("metadata is %v", f.Metadata)
	}
	for _, want := range every() {
		got, ok := f.Get(want.Name)
		if !ok || got.DType != want.DType || !slices.Equal(got.Sizes, want.Sizes) || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s is %+v, %v", want.Name, got, ok)
		}
	}
	if _, ok := f.Get("t.missing"); ok {
		t.Error("found a tensor that is not there")
	}
	if n := binary.LittleEndian.Uint64(encoded); n%8 != 0 {
		t.Errorf("header of %d bytes leaves data unaligned", n)
	}
}

func TestOrderDoesNotCount(t *testing.T) {
	want, err := safetensors.Encode(every(), nil)
	if err != nil {
		t.Fatal(err)
	}
	reversed := every()
	slices.Reverse(reversed)
	got, err := safetensors.Encode(reversed, nil)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("another order gave other bytes (%v)", err)
	}
	name := filepath.Join(t.TempDir(), "weights.safetensors")
	if err := safetensors.WriteFile(name, reversed, nil); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadFile(name); err != nil || !bytes.Equal(written, want) {
		t.Errorf("WriteFile wrote other bytes than Encode (%v)", err)
	}
	if f, err := safetensors.ReadFile(name); err != nil || len(f.Tensors) != len(reversed) {
		t.Errorf("ReadFile: %v", err)
	}
}

// The size of a file is known before there is data.
func TestSize(t *testing.T) {
	for _, metadata := range []map[string]string{nil, {"a": "1"}} {
		for _, tensors := range [][]safetensors.Tensor{nil, every()} {
			var specs []tensor.Spec
			for _, x := range tensors {
				specs = append(specs, x.Spec)
			}
			encoded, err := safetensors.Encode(tensors, metadata)
			if err != nil {
				t.Fatal(err)
			}
			if size, err := safetensors.Size(specs, metadata); err != nil || size != int64(len(encoded)) {
				t.Errorf("%d, %v instead of %d", size, err, len(encoded))
			}
		}
	}
	if _, err := safetensors.Size([]tensor.Spec{{Name: "a", DType: tensor.Uint8}, {Name: "a", DType: tensor.Uint8}}, nil); err == nil {
		t.Error("a name twice has a size")
	}
}

func TestMostDimensions(t *testing.T) {
	sizes := slices.Repeat([]int64{1}, safetensors.MaxRank)
	encoded, err := safetensors.Encode([]safetensors.Tensor{{Spec: tensor.Spec{Name: "a", DType: tensor.Uint8, Sizes: sizes}, Data: []byte{7}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Decode(encoded)
	if err != nil || len(f.Tensors) != 1 || !slices.Equal(f.Tensors[0].Sizes, sizes) {
		t.Errorf("%+v, %v", f, err)
	}
}

// What cannot be read or written is an error.
func TestFileErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing", "f")
	if _, err := safetensors.ReadFile(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ReadFile: %v", err)
	}
	if err := safetensors.WriteFile(missing, every(), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("WriteFile: %v", err)
	}
	bad := []safetensors.Tensor{{Spec: tensor.Spec{Name: "a", DType: tensor.Uint8}}}
	if err := safetensors.WriteFile(missing, bad, nil); err == nil || !strings.HasPrefix(err.Error(), "write "+missing+": tensor \"a\": 0 bytes") {
		t.Errorf("WriteFile: %v", err)
	}
}

func TestEncodeRefuses(t *testing.T) {
	spec := tensor.Spec{Name: "a", DType: tensor.Float32, Sizes: []int64{2}}
	for _, c := range []struct {
		name    string
		tensors []safetensors.Tensor
	}{
		{"too few bytes", []safetensors.Tensor{{Spec: spec, Data: make([]byte, 7)}}},
		{"a name twice", []safetensors.Tensor{{Spec: spec, Data: make([]byte, 8)}, {Spec: spec, Data: make([]byte, 8)}}},
		{"the metadata's name", []safetensors.Tensor{{Spec: tensor.Spec{Name: "__metadata__", DType: tensor.Uint8}, Data: make([]byte, 1)}}},
		{"no dtype", []safetensors.Tensor{{Spec: tensor.Spec{Name: "a"}}}},
		{"negative size", []safetensors.Tensor{{Spec: tensor.Spec{Name: "a", DType: tensor.Uint8, Sizes: []int64{-1}}}}},
		{"a name that is not UTF-8", []safetensors.Tensor{{Spec: tensor.Spec{Name: "\xff", DType: tensor.Uint8}, Data: make([]byte, 1)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := safetensors.Encode(c.tensors, nil); err == nil {
				t.Error("was accepted")
			}
			name := filepath.Join(t.TempDir(), "f")
			if err := safetensors.WriteFile(name, c.tensors, nil); err == nil {
				t.Error("was written")
			}
			if _, err := os.Stat(name); err == nil {
				t.Error("left a file")
			}
		})
	}
}

func entry(name, rest string) string { return `"` + name + `":{` + rest + `}` }

const good = `"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`

// hostile files, and what is wrong with them: "path: REASON", in order.
var hostile = []struct {
	name string
	data []byte
	want []string
}{
	{"nothing", nil, []string{"weights: TRUNCATED"}},
	{"seven bytes", make([]byte, 7), []string{"weights: TRUNCATED"}},
	{"header longer than file", file("{}", 0)[:9], []string{"weights: TRUNCATED"}},
	{"header of 2^63 bytes", []byte{0, 0, 0, 0, 0, 0, 0, 0x80, '{', '}'}, []string{"weights: HEADER_TOO_LARGE"}},
	{"no header", make([]byte, 8), []string{"weights: BAD_HEADER"}},
	{"space first", file(" {}", 0), []string{"weights: BAD_HEADER"}},
	{"torn JSON", file("{"+good, 8), []string{"weights: BAD_HEADER"}},
	{"two values", file("{"+good+"}{}", 8), []string{"weights: BAD_HEADER"}},
	{"list", file("[]", 0), []string{"weights: BAD_HEADER"}},
	{"not UTF-8", file("{\"\xff\":1}", 0), []string{"weights: BAD_HEADER"}},
	{"half a surrogate pair", file(`{`+entry(`\ud800`, `"dtype":"U8","shape":[0],"data_offsets":[0,0]`)+`}`, 0), []string{"weights: BAD_HEADER"}},
	{"deep nesting", file(`{"a":`+strings.Repeat("[", 100000)+strings.Repeat("]", 100000)+`}`, 0), []string{"weights: BAD_HEADER"}},
	{"entry is a number", file(`{"a":1}`, 0), []string{"weights: BAD_HEADER"}},
	{"missing shape", file(`{`+entry("a", `"dtype":"F32","data_offsets":[0,8]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"unknown key", file(`{`+entry("a", `"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"negative size", file(`{`+entry("a", `"dtype":"F32","shape":[-2],"data_offsets":[0,8]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"fractional size", file(`{`+entry("a", `"dtype":"F32","shape":[2.0],"data_offsets":[0,8]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"size of text", file(`{`+entry("a", `"dtype":"F32","shape":["2"],"data_offsets":[0,8]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"size beyond 63 bits", file(`{`+entry("a", `"dtype":"U8","shape":[9223372036854775808,0],"data_offsets":[0,0]`)+`}`, 0), []string{"weights: BAD_HEADER"}},
	{"shape is a number", file(`{`+entry("a", `"dtype":"F32","shape":2,"data_offsets":[0,8]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"list in a shape", file(`{`+entry("a", `"dtype":"F32","shape":[[2]],"data_offsets":[0,8]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"dtype is a number", file(`{`+entry("a", `"dtype":4,"shape":[2],"data_offsets":[0,8]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"missing dtype", file(`{`+entry("a", `"shape":[2],"data_offsets":[0,8]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"missing offsets", file(`{`+entry("a", `"dtype":"F32","shape":[2]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"three offsets", file(`{`+entry("a", `"dtype":"F32","shape":[2],"data_offsets":[0,8,8]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"no offset", file(`{`+entry("a", `"dtype":"F32","shape":[2],"data_offsets":[]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"metadata is a list", file(`{"__metadata__":["a"]}`, 0), []string{"weights: BAD_HEADER"}},
	{"metadata twice", file(`{"__metadata__":{"a":"1"},"__metadata__":{"a":"2"}}`, 0), []string{"weights: DUPLICATE_NAME"}},
	{"too few bytes for the shape", file(`{`+entry("a", `"dtype":"F32","shape":[3],"data_offsets":[0,8]`)+`}`, 8), []string{"weights/a: BAD_OFFSETS"}},
	{"data of one that is empty inside another's", file(`{`+good+","+entry("b", `"dtype":"U8","shape":[0],"data_offsets":[4,4]`)+`}`, 8), []string{"weights/b: OVERLAP"}},
	{"gap before the first", file(`{`+entry("a", `"dtype":"U8","shape":[1],"data_offsets":[1,2]`)+`}`, 2), []string{"weights/a: GAP"}},
	{"data without a tensor", file("{}", 1), []string{"weights: GAP"}},
	{"one offset", file(`{`+entry("a", `"dtype":"F32","shape":[2],"data_offsets":[8]`)+`}`, 8), []string{"weights: BAD_HEADER"}},
	{"65 dimensions", file(`{`+entry("a", `"dtype":"U8","shape":[1`+strings.Repeat(",1", 64)+`],"data_offsets":[0,1]`)+`}`, 1), []string{"weights: BAD_HEADER"}},
	{"metadata of numbers", file(`{"__metadata__":{"a":1}}`, 0), []string{"weights: BAD_HEADER"}},
	{"same name twice", file("{"+good+","+good+"}", 8), []string{"weights: DUPLICATE_NAME"}},
	{"same key twice", file(`{`+entry("a", `"dtype":"F32","dtype":"I32","shape":[2],"data_offsets":[0,8]`)+`}`, 8), []string{"weights/a: DUPLICATE_NAME"}},
	{"unknown dtype and bad offsets at once", file(`{`+entry("a", `"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]`)+","+
		entry("b", `"dtype":"F32","shape":[2],"data_offsets":[2,11]`)+`}`, 11), []string{"weights/a: UNKNOWN_DTYPE", "weights/b: BAD_OFFSETS"}},
	{"offsets beyond the data", file("{"+good+"}", 7), []string{"weights/a: BAD_OFFSETS"}},
	{"offsets reversed", file(`{`+entry("a", `"dtype":"F32","shape":[2],"data_offsets":[8,0]`)+`}`, 8), []string{"weights/a: BAD_OFFSETS"}},
	{"sizes overflow", file(`{`+entry("a", `"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]`)+`}`, 0), []string{"weights/a: BAD_SHAPE"}},
	{"sizes of 2^63 bytes", file(`{`+entry("a", `"dtype":"F16","shape":[4611686018427387904],"data_offsets":[0,0]`)+`}`, 0), []string{"weights/a: BAD_SHAPE"}},
	{"bytes after the last tensor", file("{"+good+"}", 9), []string{"weights: GAP"}},
	{"gap between tensors", file(`{`+good+","+entry("b", `"dtype":"U8","shape":[1],"data_offsets":[9,10]`)+`}`, 10), []string{"weights/b: GAP"}},
	{"overlap", file(`{`+good+","+entry("b", `"dtype":"U8","shape":[2],"data_offsets":[7,9]`)+`}`, 9), []string{"weights/b: OVERLAP"}},
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range hostile {
		t.Run(c.name, func(t *testing.T) {
			_, err := safetensors.Decode(c.data)
			ps, ok := diag.Of(err)
			if !ok {
				t.Fatalf("error is %v", err)
			}
			var got []string
			for _, p := range ps {
				got = append(got, p.Path+": "+p.Reason)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q\n%v", got, c.want, err)
			}
		})
	}
}

// What is said of a file has its numbers in their places.
func TestWhatIsSaid(t *testing.T) {
	for _, c := range []struct {
		data []byte
		want string
	}{
		{make([]byte, 7), "weights: TRUNCATED: 7 bytes are too few for the length of the header"},
		{file("{}", 0)[:9], "weights: TRUNCATED: the header claims 2 bytes, only 1 follow"},
		{[]byte{0, 0, 0, 0, 0, 0, 0, 0x80, '{', '}'}, "weights: HEADER_TOO_LARGE: the header claims 9223372036854775808 bytes, more than 100000000"},
		{file(`{"a":1}`, 0), `weights: BAD_HEADER: the header has no { where one must be in "weights/a"`},
		{file("{"+good+"}", 7), "weights/a: BAD_OFFSETS: data offsets 0 to 8 do not lie in the 7 bytes of data"},
		{file(`{`+entry("a", `"dtype":"F32","shape":[3],"data_offsets":[0,8]`)+`}`, 8), "weights/a: BAD_OFFSETS: float32[3] needs 12 bytes, the data offsets give it 8"},
		{file(`{`+good+","+entry("b", `"dtype":"U8","shape":[1],"data_offsets":[9,10]`)+`}`, 10), "weights/b: GAP: 1 bytes before its data belong to no tensor"},
		{file(`{`+good+","+entry("b", `"dtype":"U8","shape":[2],"data_offsets":[7,9]`)+`}`, 9),
			`weights/b: OVERLAP: its data begin at 7, inside those of "a", which end at 8`},
		{file("{"+good+"}", 10), "weights: GAP: 2 bytes at the end belong to no tensor"},
	} {
		if _, err := safetensors.Decode(c.data); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
