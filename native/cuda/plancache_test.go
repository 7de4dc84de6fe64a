package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"samebits/bridge/tensor"
	"samebits/native/device"
)

// loadedPlan is what one load of a convolution did.
type loadedPlan struct {
	choice, failure string
	asked           bool // a heuristic
	log             []string
}

// loadConvolution opens a device anew and prepares a convolution, as a process of its own would.
func loadConvolution(t *testing.T, o Options, prepared device.Options) loadedPlan {
	t.Helper()
	calls := logCalls(t)
	var out loadedPlan
	o.Log = func(line string) { out.log = append(out.log, line) }
	d, err := Open(0, o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Alloc(8 << 20)
	if err != nil {
		t.Fatal(err)
	}
	resolve := func(p device.Pointer) uintptr { return m.Address() + uintptr(p.Offset) }
	p, err := d.Prepare([]device.Command{torchConvolution(tensor.Float32)}, resolve, prepared)
	if err != nil {
		out.failure = err.Error()
	} else {
		out.choice = p.Choices()[0]
		if err := p.Run(0, 1); err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, call := range calls() {
		out.asked = out.asked || strings.HasPrefix(call, "4.200 ")
	}
	if err := m.Free(); err != nil {
		t.Error(err)
	}
	if d.InUse() != 0 {
		t.Errorf("%d bytes in use", d.InUse())
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	return out
}

// planFiles are the files of choices in a cache.
func planFiles(t *testing.T, o Options) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(o.Cache, "cudnn-*.plans"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// rewrite changes the only file of choices.
func rewrite(t *testing.T, o Options, change func(text string) string) {
	t.Helper()
	files := planFiles(t, o)
	if len(files) != 1 {
		t.Fatalf("files %v, one is wanted", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte(change(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
}

const twoEngines = "67:0;72:;73:"

func TestKeptPlan(t *testing.T) {
	for name, placed := range map[string]bool{"trial on scratch memory": false, "planned ahead": true} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FAKE_ENGINES", twoEngines)
			o, prepared := fakeOptions(t), func() device.Options {
				var wanted []int64
				if placed {
					return placing(t, 6<<20, &wanted)
				}
				return exact
			}
			first := loadConvolution(t, o, prepared())
			if want := "ConvFwd_eng72_k2=12_k18=-1 workspace=4608 instant 1 of 2, 3 proposed"; first.choice != want || !first.asked {
				t.Fatalf("%+v, want %q, asked", first, want)
			}
			again := loadConvolution(t, o, prepared())
			if again.choice != first.choice || again.asked || len(again.log) != 0 {
				t.Errorf("%+v, want the same choice without asking", again)
			}
			o.Replan = true
			if got := loadConvolution(t, o, prepared()); got.choice != first.choice || !got.asked {
				t.Errorf("%+v without the cache", got)
			}
		})
	}
}

// TestKeptPlanBuildsByCalls: the engine and the knobs, as cudnn_frontend sets them, in the place of a heuristic.
func TestKeptPlanBuildsByCalls(t *testing.T) {
	t.Setenv("FAKE_ENGINES", twoEngines)
	o := fakeOptions(t)
	var calls []string
	for range 2 {
		read := logCalls(t)
		d, err := Open(0, o)
		if err != nil {
			t.Fatal(err)
		}
		_, resolve := arena(t, d, 4<<20)
		prepare(t, d, resolve, exact, torchConvolution(tensor.Float32))
		calls = read()
	}
	want := []string{"2.1300 15: 15", "2.1301 3: 72", "7.600 9: 2", "7.601 3: 12", "7.600 9: 18", "7.601 3: -1", "3.300 15: 2",
		"3.302 15: 7 7", "5.401 15: 3"}
	at := slices.Index(calls, want[0])
	if at < 0 || !slices.Equal(calls[at:at+len(want)], want) {
		t.Errorf("calls are\n%s\nwanted among them\n%s", strings.Join(calls, "\n"), strings.Join(want, "\n"))
	}
}

// TestKeptPlanThatIsWrong: whatever happened to the cache, the choice is the one of a load without it, one line tells what
// was wrong, and the load after finds it right.
func TestKeptPlanThatIsWrong(t *testing.T) {
	damage := func(change func(string) string) func(*testing.T, Options) {
		return func(t *testing.T, o Options) { rewrite(t, o, change) }
	}
	setting := func(name, value string) func(*testing.T, Options) {
		return func(t *testing.T, _ Options) { t.Setenv(name, value) }
	}
	for _, test := range []struct {
		name   string
		change func(*testing.T, Options)
		line   string // of the log
		again  string // where the load after tells something too
	}{
		{name: "an engine that no longer builds", change: setting("FAKE_FAULT", "build 72"), line: "NOT_SUPPORTED"},
		{name: "an engine that no longer runs", change: setting("FAKE_FAULT", "run 72"), line: "EXECUTION_FAILED"},
		{name: "another workspace", change: setting("FAKE_FAULT", "workspace 72"), line: "with a workspace of 4672"},
		{name: "other knobs", change: setting("FAKE_FAULT", "knobs 72"), line: "it is ConvFwd_eng72_k2=13_k18=0 with", again: "k2=14_k18=1"},
		{name: "an engine that is gone", change: setting("FAKE_ENGINES", "67:0;73:"), line: "NOT_SUPPORTED"},
		{name: "an engine with another note", change: setting("FAKE_ENGINES", "72:4;73:"), line: "numerical notes forbid it"},
		{name: "a flipped bit", line: "1 damaged of", change: damage(func(s string) string {
			return strings.Replace(s, `"workspace":4608`, `"workspace":4609`, 1)
		})},
		{name: "another checksum", line: "1 damaged of", change: damage(func(s string) string {
			at := strings.LastIndex(s, " {")
			return s[:at-1] + "x" + s[at:]
		})},
		{name: "a line cut off", line: "1 damaged of", change: damage(func(s string) string { return s[:len(s)-20] })},
		{name: "lines run together", line: "1 damaged of", change: damage(func(s string) string {
			_, line, _ := strings.Cut(s, "\n")
			return strings.TrimSuffix(s, "\n") + line
		})},
		{name: "something else", line: "damaged of", change: damage(func(string) string { return "<html>\n\x00\n\n</html>" })},
		{name: "an empty file", change: damage(func(string) string { return "" })},
		{name: "another cuDNN", change: setting("FAKE_CUDNN", "91901")},
		{name: "another cuDNN's file under this one's name", line: "2 damaged of 3", change: func(t *testing.T, o Options) {
			mine := planFiles(t, o)[0]
			t.Setenv("FAKE_CUDNN", "91901")
			loadConvolution(t, o, exact)
			for _, file := range planFiles(t, o) {
				if err := os.Rename(file, mine); file != mine && err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("FAKE_CUDNN", "91900")
		}},
		{name: "a folder in the file's place", line: "unreadable", again: "unreadable", change: func(t *testing.T, o Options) {
			file := planFiles(t, o)[0]
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(file, 0o755); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		for _, placed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, placed %v", test.name, placed), func(t *testing.T) {
				t.Setenv("FAKE_ENGINES", twoEngines)
				o, prepared := fakeOptions(t), func() device.Options {
					var wanted []int64
					if placed {
						return placing(t, 6<<20, &wanted)
					}
					return exact
				}
				loadConvolution(t, o, prepared())
				test.change(t, o)
				uncached := o
				uncached.Replan = true
				want := loadConvolution(t, uncached, prepared())
				got := loadConvolution(t, o, prepared())
				if got.choice != want.choice || got.failure != want.failure || !got.asked {
					t.Errorf("%+v, want what is chosen without the cache: %+v", got, want)
				}
				if test.line == "" && len(got.log) != 0 {
					t.Errorf("log %q, none is wanted", got.log)
				}
				if test.line != "" && (len(got.log) == 0 || !strings.Contains(got.log[0], test.line)) {
					t.Errorf("log %q, want %q first", got.log, test.line)
				}
				if len(got.log) > 1 && test.again == "" {
					t.Errorf("log %q, one line is wanted", got.log)
				}
				after := loadConvolution(t, o, prepared())
				if after.choice != want.choice || after.asked != (test.again != "") {
					t.Errorf("then %+v, want %q", after, want.choice)
				}
				if log := strings.Join(after.log, "\n"); !strings.Contains(log, test.again) || test.again == "" && log != "" {
					t.Errorf("then log %q, want %q", log, test.again)
				}
			})
		}
	}
}

func TestPlansOfVersionsStayApart(t *testing.T) {
	o := fakeOptions(t)
	for _, version := range []string{"91900", "91901", "91900", "91901"} {
		t.Setenv("FAKE_CUDNN", version)
		loadConvolution(t, o, exact)
	}
	if files := planFiles(t, o); len(files) != 2 {
		t.Errorf("files %v, want one for each version", files)
	}
}

func TestPlansVariable(t *testing.T) {
	for value, keeps := range map[string]bool{"": true, "1": true, "on": true, "0": false, "off": false, "no": false} {
		t.Run(value, func(t *testing.T) {
			t.Setenv(PlansVariable, value)
			o := fakeOptions(t)
			loadConvolution(t, o, exact)
			if got := loadConvolution(t, o, exact); got.asked == keeps {
				t.Errorf("%+v", got)
			}
			if files := planFiles(t, o); (len(files) == 1) != keeps {
				t.Errorf("files %v", files)
			}
		})
	}
}

func TestPlansThatCannotBeKept(t *testing.T) {
	o := fakeOptions(t)
	o.Cache = filepath.Join(o.Cache, "below")
	touch(t, filepath.Dir(o.Cache))
	for range 2 {
		got := loadConvolution(t, o, exact)
		if !got.asked || len(got.log) == 0 || !strings.Contains(got.log[len(got.log)-1], "not kept") {
			t.Errorf("%+v", got)
		}
	}
}

func testPlans(t *testing.T, folder string) (*planCache, *[]string) {
	t.Helper()
	lines := &[]string{}
	return newPlanCache(folder, "a GPU", func(line string) { *lines = append(*lines, line) }), lines
}

func numbered(i int) planChoice {
	return planChoice{Convolution: fmt.Sprintf("convolution %d", i), Engine: fmt.Sprintf("ConvFwd_eng%d", i), Heuristic: "instant"}
}

// writerVariable makes a test's process one of those that TestPlanWriters starts: its number, and the folder.
const writerVariable = "SAMEBITS_TEST_PLAN_WRITER"

const writes = 400

// TestPlanWriters: processes that write at once lose nothing and damage nothing.
func TestPlanWriters(t *testing.T) {
	if role := os.Getenv(writerVariable); role != "" {
		number, folder, _ := strings.Cut(role, " ")
		c, lines := testPlans(t, folder)
		for i := range writes {
			choice := numbered(i)
			choice.Convolution += " of writer " + number
			c.put(choice)
			c.flush()
		}
		if len(*lines) != 0 {
			t.Errorf("log %q", *lines)
		}
		return
	}
	folder := t.TempDir()
	var writers []*exec.Cmd
	for number := range 3 {
		w := exec.Command(os.Args[0], "-test.run=^TestPlanWriters$")
		w.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s", writerVariable, number, folder))
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	for _, w := range writers {
		if err := w.Wait(); err != nil {
			t.Error(err)
		}
	}
	c, lines := testPlans(t, folder)
	for number := range writers {
		for i := range writes {
			want := numbered(i)
			want.Convolution += fmt.Sprintf(" of writer %d", number)
			if got, ok := c.get(want.Convolution); !ok || got != want {
				t.Fatalf("%+v, %v, want %+v", got, ok, want)
			}
		}
	}
	if len(*lines) != 0 {
		t.Errorf("log %q", *lines)
	}
}

func TestLaterChoiceCounts(t *testing.T) {
	folder := t.TempDir()
	c, lines := testPlans(t, folder)
	old, other := numbered(1), numbered(2)
	c.put(old)
	c.put(other)
	c.flush()
	c.drop(old, os.ErrInvalid)
	if _, ok := c.get(old.Convolution); ok {
		t.Error("a dropped choice is given")
	}
	now := old
	now.Engine = "ConvFwd_eng9_k1=-2"
	c.put(now)
	c.flush()
	for _, cache := range []*planCache{c, newPlanCache(folder, "a GPU", c.log)} {
		for _, want := range []planChoice{now, other} {
			if got, ok := cache.get(want.Convolution); !ok || got != want {
				t.Errorf("%+v, %v, want %+v", got, ok, want)
			}
		}
	}
	if _, ok := newPlanCache(folder, "another GPU", c.log).get(now.Convolution); ok {
		t.Error("another GPU has the choice")
	}
	if len(*lines) != 1 {
		t.Errorf("log %q, want one line of the dropped choice", *lines)
	}
}

func TestEngineText(t *testing.T) {
	for text, want := range map[string]string{
		"ConvFwd_eng70_k2=12_k18=0":            "{ConvFwd 70 [{2 12} {18 0}]}",
		"ConvBwdData_eng0":                     "{ConvBwdData 0 []}",
		"ConvFwd_eng1_k0=-5":                   "{ConvFwd 1 [{0 -5}]}",
		"ConvFwd_eng-1":                        "",
		"ConvFwd_eng70_k2=":                    "",
		"ConvFwd_eng70_k2=12_":                 "",
		"eng70":                                "",
		"":                                     "",
		"ConvFwd_eng1_k5000000000=1":           "",
		"ConvFwd_eng1_k1=99999999999999999999": "",
		"ConvFwd_eng99999999999999999999":      "",
	} {
		got, err := parseEngine(text)
		if (err == nil) != (want != "") || err == nil && fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v, want %s", text, got, err, want)
		}
	}
	parsed := func(text string) engine {
		e, err := parseEngine(text)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for other, equal := range map[string]bool{"A_eng1_k3=4_k1=2": true, "A_eng1_k1=2_k3=4": true, "A_eng1_k1=2": false,
		"A_eng2_k1=2_k3=4": false, "B_eng1_k1=2_k3=4": false, "A_eng1_k1=2_k3=5": false} {
		if got := parsed("A_eng1_k1=2_k3=4").equal(parsed(other)); got != equal {
			t.Errorf("%s: %v", other, got)
		}
	}
	cut := numbered(1)
	for len(cut.Engine) < mostEngineText {
		cut.Engine += "_k1=1"
	}
	if cut.valid() {
		t.Error("a text that may have been cut off counts")
	}
}

// TestConvolutionNames: what differs in anything has another name.
func TestConvolutionNames(t *testing.T) {
	names := map[string]string{}
	add := func(change string, c *device.Convolution, x uint64, o device.Options) {
		t.Helper()
		described, err := describeConvolution(c, x, 0, 0, o)
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := names[described.String()]; taken {
			t.Errorf("%s and %s have one name", change, other)
		}
		names[described.String()] = change
	}
	with := func(change func(*device.Convolution)) *device.Convolution {
		c := torchConvolution(tensor.Float32)
		change(c)
		return c
	}
	add("none", with(func(*device.Convolution) {}), 0, exact)
	add("alignment", with(func(*device.Convolution) {}), 16, exact)
	add("not deterministic", with(func(*device.Convolution) {}), 0, device.Options{})
	add("TF32", with(func(*device.Convolution) {}), 0, device.Options{Deterministic: true, AllowTF32: true})
	add("dtype", torchConvolution(tensor.BFloat16), 0, exact)
	add("direction", with(func(c *device.Convolution) { c.Direction = device.BackwardData }), 0, exact)
	add("strides", with(func(c *device.Convolution) { c.X.Strides = []int64{102400, 1, 2560, 64} }), 0, exact)
	add("padding and dilation", with(func(c *device.Convolution) { c.Padding, c.Dilation = []int64{2, 2}, []int64{2, 2} }), 0, exact)
	add("groups", with(func(c *device.Convolution) { c.W, c.Groups = contiguous(1<<20, tensor.Float32, 64, 32, 3, 3), 2 }), 0, exact)
}
