package verifypage

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"samebits/parity/gate"
	"samebits/parity/page/pagetest"
	"samebits/parity/result"
)

func render(t *testing.T, results []result.Result, o Options) (string, *html.Node) {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, results, o); err != nil {
		t.Fatal(err)
	}
	return b.String(), pagetest.Parse(t, b.String())
}

func TestPage(t *testing.T) {
	source, root := render(t, sample(), Options{Command: "parity report " + hostile})
	pagetest.Offline(t, source, root)
	pagetest.Accessible(t, root)
	pagetest.Coordinates(t, root, 300)
	pagetest.WellFormed(t, source)
}

// What results quote is text, whatever it looks like.
func TestHostile(t *testing.T) {
	source, root := render(t, sample(), Options{Command: hostile})
	if n := len(pagetest.Elements(root, "script")); n != 1 {
		t.Errorf("there are %d scripts", n)
	}
	if n := len(pagetest.Elements(root, "img")); n != 0 {
		t.Errorf("there are %d images", n)
	}
	all := pagetest.Text(root)
	if got, want := strings.Count(all, `<img src=x onerror=alert(1)> ' " `+"` {{.}} &amp;"), 10; got < want {
		t.Errorf("hostile words are shown %d times, want at least %d", got, want)
	}
	for _, c := range source {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x202e {
			t.Fatalf("the page has the character %U", c)
		}
	}
}

// The page is the same for the same results, whatever their order, and whether they were read from files.
func TestDeterministic(t *testing.T) {
	results := sample()
	first, _ := render(t, results, Options{})
	slices.Reverse(results)
	if second, _ := render(t, results, Options{}); first != second {
		t.Error("in another order the page is another one")
	}
	dir := t.TempDir()
	for _, r := range results {
		if _, err := r.Keep(dir); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := result.ReadFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var again []result.Result
	for _, k := range kept {
		again = append(again, k.Result)
	}
	if third, _ := render(t, again, Options{}); first != third {
		t.Error("of results that were read from files the page is another one")
	}
}

func TestSays(t *testing.T) {
	_, root := render(t, sample(), Options{Flag: func(r result.Result) *Flag {
		if r.Family == "yolo9" {
			return &Flag{Until: "2027-05-06", Signers: []string{"alice"}}
		}
		return nil
	}})
	all := pagetest.Text(root)
	for _, want := range []string{
		"3 of 6", "yolo9-t detect 640 batch 1 fp32 on cuda:0", "exact 0.714", "memory 0.818", "a certificate of alice is good until 2027-05-06",
		"NATIVE of native-eager: boxes", "float32[1,84,8400]: 1 234 of 705 600 elements differ, the first at 7, by at most 4096 ULP", "from 2^63",
		"operation 17 of 1282", "model.2.cv1", "yolo9/nn.py:12", "operation 16, aten::silu", "parity trace dfine --probe noise",
		"PLUGIN_CRASHED", "SOMETHING_NEW", "nobody knows it", "LATER", "nodes by kind (kernel 1900, memset 10)", "passages (captures 0, eager steps 0, facts (stream another), fallbacks 0", "1235 launches by kind", "library convolution",
		"distances from the same model in double precision; native's may be 4 times", "1.500", "NO_GPU",
		"param.fc.weight, step 2 of the main episode", "more tensors have the same digest in all arms", "param.150", "3 steps, learning rate 0.01",
		"reference-eager (2)", "120 MiB", "1 910", "3 of 4", "all 4 arms", "NVIDIA H200", "recordings 4", "operations 1282",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// Every gate is explained.
func TestGateTexts(t *testing.T) {
	for _, mode := range []string{gate.Predict, gate.Train} {
		for _, id := range append(gate.Order(mode), gate.Seam, gate.Shape) {
			if texts[id] == "" {
				t.Errorf("there is no line on %s", id)
			}
		}
	}
}

// No results are a page, too; so are results of which nearly nothing is known.
func TestEmpty(t *testing.T) {
	for _, results := range [][]result.Result{nil, {{}}, {{Verdict: result.Exact, Arms: []string{"x"}, Memory: map[string]result.Memory{"x": {PeakBytes: -1}},
		Processes: []result.Process{{Arm: "x", Phases: []result.Phase{{Name: "y", At: -1, Took: -1}}}, {}}}}} {
		source, root := render(t, results, Options{})
		pagetest.Offline(t, source, root)
		pagetest.Accessible(t, root)
		pagetest.Coordinates(t, root, 0)
	}
}

// A whole run stays small enough to be sent by mail.
func TestSize(t *testing.T) {
	source, _ := render(t, many(), Options{})
	if len(source) > 4<<20 {
		t.Errorf("%d results take %d bytes", len(many()), len(source))
	}
}

// TestSample writes pages where SAMEBITS_PAGE says, to be looked at.
func TestSample(t *testing.T) {
	folder := os.Getenv("SAMEBITS_PAGE")
	if folder == "" {
		t.Skip("SAMEBITS_PAGE names no folder")
	}
	for name, results := range map[string][]result.Result{"sample.html": sample(), "many.html": many(), "one.html": {differs()}} {
		source, _ := render(t, results, Options{Command: "parity report results -o results.html"})
		if err := os.WriteFile(folder+"/"+name, []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
