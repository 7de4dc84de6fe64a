package recording_test

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/recording/recordingtest"
	"samebits/bridge/tensor"
)

// everyKind is a recording with an argument of each kind and a slot.
func everyKind() *recording.Recording {
	b := recordingtest.New("cuda")
	x := b.Tensor(recording.Input, "images", tensor.BFloat16, 2, 3)
	y := b.Scratch(tensor.Float32, 3, 2)
	z := b.View(y, []int64{2}, []int64{2}, 1)
	b.R.Slots = []recording.Slot{{Name: "lr", DType: tensor.Float64}}
	b.Op("mine::odd.out", []recording.Argument{
		recordingtest.None("none"), recordingtest.Value("self", x), recordingtest.Bool("flag", true), recordingtest.Int("n", -3),
		recordingtest.Real("negative_zero", math.Copysign(0, -1)), {Name: "text", Kind: recording.Text, Text: "bilinear"},
		recordingtest.Values("tensors", x, x), recordingtest.Ints("empty"), {Name: "dtype", Kind: recording.DTypeOf, DType: tensor.Float32},
		{Name: "memory_format", Kind: recording.MemoryFormat, Text: "channels_last"}, {Name: "layout", Kind: recording.Layout, Text: "strided"},
		{Name: "device", Kind: recording.Device, Text: "cuda"}, {Name: "lr", Kind: recording.SlotOf, Slot: 0},
	}, y, z)
	b.R.Operations[0].Results = append(b.R.Operations[0].Results, recordingtest.Values("", y, z), recordingtest.None(""))
	b.Input("images", x)
	b.Output("output", z)
	return b.R
}

func TestRoundTrip(t *testing.T) {
	for name, r := range map[string]*recording.Recording{"step": recordingtest.ConvBNReLU(), "every kind": everyKind()} {
		t.Run(name, func(t *testing.T) {
			data := recordingtest.Encoded(t, r)
			got, err := recording.Decode(data)
			if err != nil {
				t.Fatal(err)
			}
			if want := digest.Bytes(data); got.Digest != want {
				t.Errorf("digest %s, want %s", got.Digest, want)
			}
			if differences := recording.Equal(r, got); len(differences) > 0 {
				t.Errorf("differences: %v", differences)
			}
			if !reflect.DeepEqual(got.Header, r.Header) {
				t.Errorf("header %+v, want %+v", got.Header, r.Header)
			}
			if again := recordingtest.Encoded(t, got); !bytes.Equal(again, data) {
				t.Error("encoded again it has other bytes")
			}
		})
	}
}

func TestDecodeRefuses(t *testing.T) {
	whole := recordingtest.Encoded(t, recordingtest.ConvBNReLU())
	header := func(schema uint64) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType),
			protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), schema))
	}
	nested := []byte{}
	for range 200 {
		item := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), nested)
		nested = protowire.AppendBytes(protowire.AppendTag(nil, 8, protowire.BytesType), item)
	}
	argument := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), nested)
	operation := protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), argument)
	noKind := recordingtest.ConvBNReLU()
	kindless := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), []byte("\x0a\x01x"))
	sizes := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), make([]byte, recording.MaxElements))
	value := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), sizes)
	storage := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType),
		protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1<<63))
	for _, c := range []struct {
		name, reason, text string
		data               []byte
	}{
		{"nothing", "SCHEMA_VERSION", "version 0, this program reads version 1", nil},
		{"newer version", "SCHEMA_VERSION", "version 2, this program reads version 1", append(header(2), 0x78, 1)},
		{"text", "TORN_RECORDING", "", []byte("this is no recording at all")},
		{"last byte missing", "TORN_RECORDING", "", whole[:len(whole)-1]},
		{"unknown field", "UNKNOWN_FIELD", "Recording has a field 15", append(bytes.Clone(whole), 0x78, 1)},
		{"wire type of another field", "UNKNOWN_FIELD", "Recording has a field 4", append(bytes.Clone(whole), 0x20, 1)},
		{"lists in lists in lists", "TOO_DEEP", "", append(bytes.Clone(whole), operation...)},
		{"millions of empty operations", "TOO_LARGE", "elements", append(header(1), bytes.Repeat([]byte{0x22, 0}, recording.MaxElements)...)},
		{"more bytes than there may be", "TOO_LARGE", "bytes, more than", make([]byte, recording.MaxBytes+1)},
		{"millions of sizes", "TOO_LARGE", "elements", append(header(1), value...)},
		{"a storage of 2^63 bytes", "BAD_SIZE", "9223372036854775808 bytes", append(recordingtest.Encoded(t, noKind), storage...)},
		{"argument without kind", "NO_KIND", "", append(recordingtest.Encoded(t, noKind), protowire.AppendBytes(protowire.AppendTag(nil, 4, protowire.BytesType), kindless)...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := recording.Decode(c.data)
			ps, ok := diag.Of(err)
			if !ok || ps[0].Reason != c.reason || !strings.Contains(ps[0].Summary, c.text) {
				t.Errorf("error %v, want %s: …%s…", err, c.reason, c.text)
			}
		})
	}
}

// What is wrong with bytes is said with the first byte that is.
func TestPlaces(t *testing.T) {
	whole := recordingtest.Encoded(t, recordingtest.ConvBNReLU())
	other := bytes.Clone(whole)
	at := bytes.Index(other, []byte("conv.weight"))
	other[at] = 0xff
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"unknown field", fmt.Sprintf("byte %d", len(whole)), append(bytes.Clone(whole), 0x78, 1)},
		{"no UTF-8", fmt.Sprintf("byte %d", at-1), other}, // its length stands before it
		{"text", "byte 1", []byte("this is no recording at all")},
	} {
		_, err := recording.Decode(c.data)
		if ps, _ := diag.Of(err); len(ps) != 1 || ps[0].Path != c.want {
			t.Errorf("%s: %v, want it at %s", c.name, err, c.want)
		}
	}
}

func TestTruncationNeverPasses(t *testing.T) {
	whole := recordingtest.Encoded(t, recordingtest.ConvBNReLU())
	for n := range len(whole) {
		if r, err := recording.Decode(whole[:n]); err == nil && len(r.Outputs) == 2 {
			t.Fatalf("the first %d of %d bytes were accepted", n, len(whole))
		}
	}
}

func TestEncodeRefusesBadIndices(t *testing.T) {
	for name, spoil := range map[string]func(*recording.Recording){
		"operations[0].arguments[0].value": func(r *recording.Recording) { r.Operations[0].Arguments[0].Value = -1 },
		"operations[5].arguments[1].list[0]: kind": func(r *recording.Recording) {
			r.Operations[5].Arguments[1].Items[0].Kind = 99
		},
		"values[2].storage":              func(r *recording.Recording) { r.Values[2].Storage = 1 << 40 },
		"storages[0]":                    func(r *recording.Recording) { r.Storages[0].Bytes = -1 },
		"operations[5].results[0].value": func(r *recording.Recording) { r.Operations[5].Results[0].Value = -1 },
		"operations[0].arguments[0].slot": func(r *recording.Recording) {
			r.Operations[0].Arguments[0] = recording.Argument{Name: "x", Kind: recording.SlotOf, Slot: 1 << 32}
		},
		"inputs[0]":  func(r *recording.Recording) { r.Inputs[0].Value = -5 },
		"outputs[1]": func(r *recording.Recording) { r.Outputs[1].Value = -5 },
	} {
		t.Run(name, func(t *testing.T) {
			r := recordingtest.ConvBNReLU()
			spoil(r)
			if _, err := recording.Encode(r); err == nil || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("error %v, want %s…", err, name)
			}
		})
	}
}
