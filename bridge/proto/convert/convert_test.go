package convert

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	pb "samebits/bridge/proto/samebitsv1"
	"samebits/bridge/tensor"
)

// trip sends a value over the wire: struct, message, bytes, message, struct.
func trip[Plain any, Wire any, Message interface {
	*Wire
	proto.Message
}](to func(Plain) Message, from func(Message) Plain) func(*testing.T) {
	return func(t *testing.T) {
		var sent Plain
		fill(reflect.ValueOf(&sent).Elem(), 1)
		data, err := proto.Marshal(to(sent))
		if err != nil {
			t.Fatal(err)
		}
		message := Message(new(Wire))
		if err := proto.Unmarshal(data, message); err != nil {
			t.Fatal(err)
		}
		if got := from(message); !reflect.DeepEqual(got, sent) {
			t.Errorf("sent %+v\ngot  %+v", sent, got)
		}
		var none Plain
		if got := from(to(none)); !reflect.DeepEqual(got, none) {
			t.Errorf("sent nothing, got %+v", got)
		}
	}
}

// fill gives every field a value of its own, so that no field may be forgotten or mixed up.
func fill(v reflect.Value, n int) int {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			n = fill(v.Field(i), n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			n = fill(v.Index(i), n)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		n = fill(value, fill(key, n))
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		n = fill(v.Elem(), n)
	case reflect.String:
		v.SetString("text" + strings.Repeat("x", n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(n) / 3)
	case reflect.Uint8: // a dtype, or what to export
		v.SetUint(uint64(1 + n%2))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n))
	default:
		v.SetInt(int64(n))
	}
	return n + 1
}

func TestRoundTrips(t *testing.T) {
	for name, test := range map[string]func(*testing.T){
		"BuildRequest":   trip(Build, BuildFrom),
		"ExportRequest":  trip(Export, ExportFrom),
		"LoadRequest":    trip(Load, LoadFrom),
		"PrepareRequest": trip(Prepare, PrepareFrom),
		"DisturbRequest": trip(Disturb, DisturbFrom),
		"SituateRequest": trip(Situate, SituateFrom),
		"SituateReply":   trip(SituateReply, SituateReplyFrom),
		"ProcessRequest": trip(Process, ProcessFrom),
		"ProcessReply":   trip(ProcessReply, ProcessReplyFrom),
		"TraceRequest":   trip(Trace, TraceFrom),
		"MeasureRequest": trip(Measure, MeasureFrom),
		"Bank":           trip(Bank, bankFrom),
		"Description":    trip(Description, DescriptionFrom),
		"BuildReply":     trip(BuildReply, BuildReplyFrom),
		"RecordReply":    trip(RecordReply, RecordReplyFrom),
		"LoadReply":      trip(LoadReply, LoadReplyFrom),
		"PrepareReply":   trip(PrepareReply, PrepareReplyFrom),
		"TraceReply":     trip(TraceReply, TraceReplyFrom),
		"MeasureReply":   trip(MeasureReply, MeasureReplyFrom),
		"Stats":          trip(Stats, StatsFrom),
	} {
		t.Run(name, test)
	}
}

func TestWhatIsExported(t *testing.T) {
	for _, what := range []arm.What{0, arm.TheRecording, arm.TheWeights, arm.TheCheckpoint} {
		if got := ExportFrom(Export(arm.ExportRequest{What: what})).What; got != what {
			t.Errorf("%v became %v", what, got)
		}
	}
	if got := ExportFrom(&pb.ExportRequest{What: 99}).What; got != 0 {
		t.Errorf("what nobody knows became %v", got)
	}
}

func TestHostileNumbers(t *testing.T) {
	region := regionFrom(&pb.Region{Offset: math.MaxUint64, Length: 1 << 63})
	if region.Offset != math.MaxInt64 || region.Length != math.MaxInt64 {
		t.Errorf("%+v", region)
	}
	for _, d := range []pb.DType{0, 11, 256 + 9, -1, math.MinInt32} {
		if got := dtypeFrom(d); got != tensor.Invalid {
			t.Errorf("dtype %d became %v", d, got)
		}
	}
	if got := Region(arm.Region{Offset: -1, Length: -5}); got.Offset != 0 || got.Length != 0 {
		t.Errorf("%v", got)
	}
	if index(-1) != math.MaxUint32 || index(-2) != math.MaxUint32 || index(1<<40) != math.MaxUint32 {
		t.Error("an index that does not fit became a small one")
	}
}

func TestSpecBytes(t *testing.T) {
	for _, c := range []struct {
		name  string
		spec  tensor.Spec
		bytes int64 // -1: cannot be
	}{
		{"scalar", tensor.Spec{DType: tensor.Float64}, 8},
		{"empty", tensor.Spec{DType: tensor.Float64, Sizes: []int64{3, 0, 5}}, 0},
		{"image", tensor.Spec{DType: tensor.BFloat16, Sizes: []int64{1, 3, 640, 640}}, 2457600},
		{"no dtype", tensor.Spec{Sizes: []int64{1}}, -1},
		{"negative", tensor.Spec{DType: tensor.Int8, Sizes: []int64{-1, -1}}, -1},
		{"the most", tensor.Spec{DType: tensor.Int16, Sizes: []int64{1 << 45}}, 1 << 46},
		{"more", tensor.Spec{DType: tensor.Int16, Sizes: []int64{1<<45 + 1}}, -1},
		{"more in the end", tensor.Spec{DType: tensor.Int8, Sizes: []int64{1 << 45, 4}}, -1},
		{"more that nothing is of", tensor.Spec{DType: tensor.Int8, Sizes: []int64{0, 1 << 62, 4}}, 0},
		{"overflow", tensor.Spec{DType: tensor.Int8, Sizes: []int64{1 << 32, 1 << 32}}, -1},
		{"overflow to zero", tensor.Spec{DType: tensor.Float32, Sizes: []int64{1 << 62}}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := SpecBytes(c.spec)
			if (err != nil) != (c.bytes < 0) || (err == nil && got != c.bytes) {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

func TestProblemsFit(t *testing.T) {
	long := strings.Repeat("é", 5000)
	many := make(diag.Problems, 3000)
	for i := range many {
		many[i] = diag.Problem{Reason: "UNKNOWN_OPERATION", Summary: "no such operation", Path: "operations"}
	}
	for _, c := range []struct {
		name  string
		sent  diag.Problems
		first string
		count int // 0: any
		last  string
	}{
		{"one", diag.Problems{{Reason: "A", Summary: "s", Detail: "d", Path: "p"}}, "A", 1, "A"},
		{"three", diag.Problems{{Reason: "A"}, {Reason: "B"}, {Reason: "C"}}, "A", 3, "C"},
		{"many", many, "UNKNOWN_OPERATION", 0, "MORE_PROBLEMS"},
		{"a long one", diag.Problems{{Reason: "LONG", Summary: long, Detail: long, Path: long}}, "LONG", 1, "LONG"},
		{"a long one and another", diag.Problems{{Reason: "LONG", Summary: long}, {Reason: "B"}}, "LONG", 2, "MORE_PROBLEMS"},
		{"no UTF-8", diag.Problems{{Reason: "A", Summary: "\xff"}}, "A", 1, "A"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, limit := range []int{300, 4032, MaxTrailer} {
				data := EncodeProblems(c.sent, limit)
				got, err := DecodeProblems(data)
				if err != nil || len(data) > limit {
					t.Fatalf("%d bytes of %d, %v", len(data), limit, err)
				}
				if got[0].Reason != c.first || got[len(got)-1].Reason != c.last || (c.count > 0 && len(got) != c.count) {
					t.Errorf("got %v", got)
				}
				if !utf8.ValidString(got[0].Summary) {
					t.Errorf("%q", got[0].Summary)
				}
			}
		})
	}
	if got, _ := DecodeProblems(EncodeProblems(diag.Problems{{Reason: "A", Summary: "s", Detail: "d", Path: "p"}}, 300)); got[0] !=
		(diag.Problem{Reason: "A", Summary: "s", Detail: "d", Path: "p"}) {
		t.Errorf("%+v", got[0])
	}
	if _, err := DecodeProblems([]byte("\xff\xff")); err == nil {
		t.Error("garbage was decoded")
	}
}

// All that fits is sent, nothing longer than the limit is, and what is left out is counted.
func TestProblemsAtTheLimit(t *testing.T) {
	const limit = 300
	for length := range 2 * limit {
		sent := make(diag.Problems, 3)
		for i := range sent {
			sent[i] = diag.Problem{Reason: "R", Summary: strings.Repeat("x", length)}
		}
		data := EncodeProblems(sent, limit)
		got, err := DecodeProblems(data)
		if err != nil || len(data) > limit {
			t.Fatalf("%d bytes each: %d bytes, %v", length, len(data), err)
		}
		left := 0
		if last := got[len(got)-1]; last.Reason == "MORE_PROBLEMS" {
			if _, err := fmt.Sscanf(last.Summary, "%d more problems", &left); err != nil {
				t.Errorf("%d bytes each: %q, %v", length, last.Summary, err)
			}
			got = got[:len(got)-1]
		}
		if len(got)+left != len(sent) {
			t.Errorf("%d bytes each: %d were sent, %d left out", length, len(got), left)
		}
	}
	whole := diag.Problem{Reason: "R", Summary: strings.Repeat("x", limit-20)}
	if got, err := DecodeProblems(EncodeProblems(diag.Problems{whole}, limit)); err != nil || len(got) != 1 || got[0] != whole {
		t.Errorf("one that fits: %v, %v", got, err)
	}
}

// Kinds of errors keep their kind on the wire; others have none.
func TestKinds(t *testing.T) {
	for _, kind := range []error{arm.ErrUnimplemented, arm.ErrWrongOrder, arm.ErrOutOfMemory} {
		code, known := CodeOf(fmt.Errorf("load: %w", kind))
		if !known || !errors.Is(KindOf(code), kind) {
			t.Errorf("%v is %v, which is %v", kind, code, KindOf(code))
		}
	}
	if code, known := CodeOf(errors.New("broken")); known || code != codes.OK {
		t.Errorf("another error is %v", code)
	}
	for _, code := range []codes.Code{codes.OK, codes.Internal, codes.InvalidArgument} {
		if kind := KindOf(code); kind != nil {
			t.Errorf("%v is %v", code, kind)
		}
	}
}
