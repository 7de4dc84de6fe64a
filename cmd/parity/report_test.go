package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"samebits/parity/suite/suitetest"
)

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The page of a run, that of its folder, and that of its JSON lines say the same.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	output, page, lines := filepath.Join(dir, "results"), filepath.Join(dir, "page.html"), filepath.Join(dir, "all.jsonl")
	got := parity(t, fleet(suitetest.Faults{}), "verify", "--all", "--precision", "fp32,bf16", "--output", output, "--html", page, "--jsonl", lines)
	if got.status != 0 {
		t.Fatalf("status %d\n%s", got.status, got.stderr)
	}
	want := readFile(t, page)
	for _, has := range []string{"8 of 8", "anchor-s detect 8 batch 1 bf16 on cuda:0", "SAME-RECORDING", "Device memory", "When which process ran"} {
		if !strings.Contains(want, has) {
			t.Errorf("the page lacks %q", has)
		}
	}
	for _, from := range []string{output, lines} {
		again := parity(t, &fakes{}, "report", from)
		_, rest, _ := strings.Cut(again.stdout, "<main>")
		if _, whole, _ := strings.Cut(want, "<main>"); again.status != 0 || rest != whole {
			t.Errorf("of %s: status %d, %d bytes instead of %d\n%s", from, again.status, len(rest), len(whole), again.stderr)
		}
	}
}

func TestReportOfWhatIsTorn(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"report"}, {"report", dir, "--trust", filepath.Join(dir, "missing")}} {
		if got := parity(t, &fakes{}, args...); got.status != 2 {
			t.Errorf("%v: status %d: %s", args, got.status, got.stderr)
		}
	}
	var out, said strings.Builder
	if status := (&app{out: &out, err: &said, shown: true}).run(t.Context(), []string{"report", dir}); status != 2 || !strings.Contains(said.String(), "-o FILE") {
		t.Errorf("status %d: %s", status, said.String())
	}
	missing := filepath.Join(dir, "missing.json")
	if got := parity(t, &fakes{}, "report", missing); got.status != 3 || got.stdout != "" || !strings.Contains(got.stderr, "no such file") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	parity(t, fleet(suitetest.Faults{Native: suitetest.ULPs(1), NativeTrace: true}), "verify", "anchor", "--output", dir)
	torn, page := filepath.Join(dir, "torn.jsonl"), filepath.Join(dir, "it's a page.html")
	if err := os.WriteFile(torn, []byte("\n{\"schema\": 1}\n{\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := parity(t, &fakes{}, "report", dir, torn, "-o", page)
	if got.status != 3 || !strings.Contains(got.stderr, "line 2, is no result") || !strings.Contains(got.stderr, "line 3, is no result") {
		t.Errorf("status %d: %s", got.status, got.stderr)
	}
	text := readFile(t, page)
	for _, has := range []string{"NATIVE_DIFFERS", "aten::mul.Tensor", "Elements by their distance", `it&#39;\&#39;&#39;s a page.html`} {
		if !strings.Contains(text, has) {
			t.Errorf("the page lacks %q", has)
		}
	}
}

// A certificate that cannot be read is named, and the page is made without it.
func TestReportBesideACertificateThatCannotBeRead(t *testing.T) {
	dir, certificates := t.TempDir(), t.TempDir()
	parity(t, fleet(suitetest.Faults{}), "verify", "anchor", "--output", dir)
	link := filepath.Join(certificates, "gone.dsse.json")
	if err := os.Symlink(filepath.Join(certificates, "missing"), link); err != nil {
		t.Fatal(err)
	}
	got := parity(t, &fakes{}, "report", dir, "--certificates", certificates)
	if got.status != 0 || !strings.Contains(got.stdout, "anchor") || !strings.HasPrefix(got.stderr, "not counted: ") || !strings.Contains(got.stderr, link) {
		t.Errorf("status %d, %d bytes: %s", got.status, len(got.stdout), got.stderr)
	}
}

// A page is written of what is finished when a run is interrupted, or when a cell breaks.
func TestReportOfBreak(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	got := parity(t, fleet(suitetest.Faults{CrashesOn: "buoy"}), "verify", "--all", "--html", page)
	if got.status != 3 {
		t.Fatalf("status %d\n%s", got.status, got.stderr)
	}
	if text := readFile(t, page); !strings.Contains(text, "3 of 4") || !strings.Contains(text, "there is no space left on the device") {
		t.Error("the page does not say what broke")
	}
	if got := parity(t, fleet(suitetest.Faults{}), "verify", "anchor", "--html", filepath.Join(page, "below")); got.status != 2 || got.fakes.Processes != 0 {
		t.Errorf("status %d, %d processes: %s", got.status, got.fakes.Processes, got.stderr)
	}
}
