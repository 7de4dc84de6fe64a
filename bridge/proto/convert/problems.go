package convert

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"samebits/bridge/arm"
	"samebits/bridge/diag"
	pb "samebits/bridge/proto/samebitsv1"
)

// ProblemsKey is the trailing metadata in which problems travel, serialized.
const ProblemsKey = "samebits-problems-bin"

// MaxTrailer bounds the problems in a trailer: gRPC in other languages refuses large headers.
const MaxTrailer = 6 << 10

var kinds = []struct {
	err  error
	code codes.Code
}{
	{arm.ErrUnimplemented, codes.Unimplemented},
	{arm.ErrWrongOrder, codes.FailedPrecondition},
	{arm.ErrOutOfMemory, codes.ResourceExhausted},
}

// CodeOf gives the gRPC status of the kind that err wraps, if it wraps one.
func CodeOf(err error) (codes.Code, bool) {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.code, true
		}
	}
	return codes.OK, false
}

// KindOf is the opposite: the kind that a gRPC status stands for, or nil.
func KindOf(code codes.Code) error {
	for _, k := range kinds {
		if k.code == code {
			return k.err
		}
	}
	return nil
}

// EncodeProblems serializes problems in at most limit bytes. Those that do not fit are counted by a last one; at least
// one is kept, cut short if need be.
func EncodeProblems(problems diag.Problems, limit int) []byte {
	const reserve = 80 // for the problem that counts the rest
	out := &pb.Problems{}
	used := 0
	for i, p := range problems {
		m := &pb.Problem{Reason: valid(p.Reason), Summary: valid(p.Summary), Detail: valid(p.Detail), Path: valid(p.Path)}
		size := proto.Size(m) + 8
		room := limit - used
		if i < len(problems)-1 {
			room -= reserve
		}
		if size > room {
			if i == 0 {
				out.Problems = append(out.Problems, shorten(m, limit-reserve))
				i++
			}
			if left := len(problems) - i; left > 0 {
				out.Problems = append(out.Problems, &pb.Problem{Reason: "MORE_PROBLEMS", Summary: fmt.Sprintf("%d more problems", left)})
			}
			break
		}
		used += size
		out.Problems = append(out.Problems, m)
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(out)
	if err != nil {
		panic(fmt.Sprintf("problems of valid text do not serialize: %v", err))
	}
	return data
}

// DecodeProblems reads what EncodeProblems wrote.
func DecodeProblems(data []byte) (diag.Problems, error) {
	var in pb.Problems
	if err := proto.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("problems: %w", err)
	}
	problems := make(diag.Problems, len(in.Problems))
	for i, p := range in.Problems {
		problems[i] = diag.Problem{Reason: diag.Readable(p.Reason), Summary: diag.Readable(p.Summary), Detail: diag.Readable(p.Detail),
			Path: diag.Readable(p.Path)} // the other side is not trusted
	}
	return problems, nil
}

// shorten cuts a problem's texts so that they fit in limit bytes.
func shorten(p *pb.Problem, limit int) *pb.Problem {
	limit -= 32 // tags and lengths
	cut := func(s string, n int) string {
		if len(s) <= n {
			return s
		}
		return strings.ToValidUTF8(s[:n], "") + "…"
	}
	return &pb.Problem{Reason: cut(p.Reason, limit/8), Path: cut(p.Path, limit/8), Summary: cut(p.Summary, limit/2),
		Detail: cut(p.Detail, limit/8)}
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
