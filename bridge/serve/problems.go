package serve

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"samebits/bridge/diag"
	"samebits/bridge/proto/convert"
)

// refuse joins the kind of a refusal with what was wrong.
func refuse(kind error, problems ...diag.Problem) error {
	return fmt.Errorf("%w: %w", kind, diag.Problems(problems))
}

// explain turns what an arm returned into a gRPC status and its problems, of which there is at least one.
func explain(err error) (codes.Code, diag.Problems) {
	var panicked *panicError
	if errors.As(err, &panicked) {
		return codes.Internal, diag.Problems{{Reason: "PLUGIN_PANIC", Summary: panicked.Error(),
			Detail: "its stack is in the plugin's log; the plugin goes on serving"}}
	}
	problems, named := diag.Of(err)
	named = named && len(problems) > 0
	code, known := convert.CodeOf(err)
	switch {
	case known:
	case named:
		code = codes.InvalidArgument
	default:
		code = codes.Internal
	}
	if !named {
		problems = diag.Problems{{Reason: reasons[code], Summary: err.Error()}}
	}
	return code, problems
}

// reasons for errors that name no problem themselves.
var reasons = map[codes.Code]string{
	codes.Unimplemented:      "UNIMPLEMENTED",
	codes.FailedPrecondition: "WRONG_ORDER",
	codes.ResourceExhausted:  "OUT_OF_MEMORY",
	codes.Internal:           "PLUGIN_ERROR",
}

// A panicError is a panic of an arm, caught.
type panicError struct{ value any }

func (p *panicError) Error() string { return fmt.Sprintf("the plugin panicked: %v", p.value) }
