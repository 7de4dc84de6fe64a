package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

const byHand = "SAMEBITS_TEST_BY_HAND"

func TestMain(m *testing.M) {
	if os.Getenv(byHand) != "" {
		Serve(&Unimplemented{})
		return
	}
	os.Exit(m.Run())
}

// A plugin that somebody starts in a shell says what it is.
func TestByHand(t *testing.T) {
	for _, c := range []struct {
		name string
		env  string
		code int
		says string
	}{
		{"without a host", "X=", 2, "is a plugin of Samebits"},
		{"with the cookie alone", cookieKey + "=" + cookieValue, 1, "SAMEBITS_FD_MEMORY is \"\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = []string{byHand + "=1", c.env}
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestUnimplemented(t *testing.T) {
	var a Arm = Unimplemented{}
	ctx := context.Background()
	_, describe := a.Describe(ctx)
	_, load := a.Load(ctx, nil, LoadRequest{})
	_, prepare := a.Prepare(ctx, nil, PrepareRequest{})
	_, trace := a.Trace(ctx, nil, TraceRequest{})
	_, measure := a.Measure(ctx, MeasureRequest{})
	_, stats := a.Stats(ctx)
	for call, err := range map[string]error{"Describe": describe, "Load": load, "Prepare": prepare, "Step": a.Step(0, 0),
		"Disturb": a.Disturb(ctx, DisturbRequest{}), "Trace": trace, "Measure": measure, "Stats": stats} {
		if !errors.Is(err, ErrUnimplemented) || !strings.Contains(err.Error(), call) {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func TestExplain(t *testing.T) {
	problems := diag.Problems{{Reason: "X", Summary: "x"}, {Reason: "Y", Summary: "y"}}
	for _, c := range []struct {
		name    string
		err     error
		code    codes.Code
		reasons string
	}{
		{"problems", problems, codes.InvalidArgument, "X Y"},
		{"wrapped problems", fmt.Errorf("load: %w", problems), codes.InvalidArgument, "X Y"},
		{"no problems", diag.Problems{}, codes.Internal, "PLUGIN_ERROR"},
		{"order", ErrWrongOrder, codes.FailedPrecondition, "WRONG_ORDER"},
		{"order with problems", errors.Join(ErrWrongOrder, problems), codes.FailedPrecondition, "X Y"},
		{"memory", fmt.Errorf("%w: 3 GiB", ErrOutOfMemory), codes.ResourceExhausted, "OUT_OF_MEMORY"},
		{"missing", unimplemented("Build"), codes.Unimplemented, "UNIMPLEMENTED"},
		{"anything else", errors.New("broken"), codes.Internal, "PLUGIN_ERROR"},
		{"panic", guard(func() error { panic(problems) }), codes.Internal, "PLUGIN_PANIC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, got := explain(c.err)
			var reasons []string
			for _, p := range got {
				reasons = append(reasons, p.Reason)
			}
			if code != c.code || strings.Join(reasons, " ") != c.reasons {
				t.Errorf("got %v, %v", code, got)
			}
		})
	}
}

func at(offset, length int64) Region { return Region{Offset: offset, Length: length} }

func TestMemory(t *testing.T) {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), "test")
	defer func() { _ = file.Close() }()
	page := int64(os.Getpagesize())
	if err := file.Truncate(5 * page); err != nil {
		t.Fatal(err)
	}
	m := newMemory(file)
	for _, bad := range []Region{at(0, page), at(page+64, page), at(page, 0), at(page, -page), at(page, 5*page), at(-page, page), at(page, 1<<62)} {
		if err := m.attach(bad); err == nil {
			t.Errorf("%+v was attached", bad)
		}
	}
	for _, r := range []Region{at(page, 2*page), at(3*page, 2*page)} {
		if err := m.attach(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		region Region
		ok     bool
	}{
		{"all of a range", at(page, 2*page), true},
		{"nothing at its end", at(3*page, 0), true},
		{"second range", at(3*page+64, 2*page-64), true},
		{"across ranges", at(page+64, 2*page), false},
		{"control block", at(0, 64), false},
		{"odd", at(page+8, 8), false},
		{"past the end", at(5*page, 64), false},
		{"negative", at(page, -1), false},
		{"overflow", at(page, 1<<63-1), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := m.Bytes(c.region)
			if (err == nil) != c.ok || (c.ok && (int64(len(b)) != c.region.Length || cap(b) != len(b))) {
				t.Errorf("%d bytes, %v", len(b), err)
			}
		})
	}
	b, err := m.Tensor(Placed{Spec: tensor.Spec{Name: "x", DType: tensor.Int16, Sizes: []int64{3}}, Region: at(page, 6)})
	if err != nil || len(b) != 6 {
		t.Fatalf("%d bytes, %v", len(b), err)
	}
	b[5] = 7
	var got [1]byte
	if _, err := file.ReadAt(got[:], page+5); err != nil || got[0] != 7 {
		t.Errorf("not shared: %v, %v", got, err)
	}
	if len(m.Ranges()) != 2 || &m.Ranges()[0][0] != &b[0] {
		t.Error("a range moved")
	}
	for _, r := range m.Ranges() {
		if err := unix.Munmap(r); err != nil {
			t.Error(err)
		}
	}
}
