package verifypage

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"samebits/parity/page/pagetest"
	"samebits/parity/result"
)

// file writes a page for a browser.
func file(t *testing.T, results []result.Result) string {
	t.Helper()
	source, _ := render(t, results, Options{Command: "parity report results -o results.html", Flag: func(r result.Result) *Flag {
		if r.Verdict != result.Exact {
			return nil
		}
		return &Flag{Until: "2027-05-06", Signers: []string{"alice"}}
	}})
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The page in a real browser: nothing is complained of or asked for, text can be read in both modes and at each width, the
// filter works, each cell opens.
func TestBrowser(t *testing.T) {
	b := pagetest.NewBrowser(t)
	path := file(t, sample())
	for _, dark := range []bool{false, true} {
		for _, width := range []int{1400, 360} {
			b.Run(fmt.Sprintf("dark %v, %d wide", dark, width), func(t *testing.T) {
				b.Dark(dark)
				b.Size(width, 900)
				b.Open(path)
				b.Eval("for (const d of document.querySelectorAll('details')) d.open = true", nil)
				b.Contrast(500)
				b.Fits(width)
				b.Quiet()
			})
		}
	}
	b.Size(1400, 900)
	b.Open(path)
	b.Run("each cell opens by its link", func(t *testing.T) {
		var bad []string
		b.Eval(`(async () => {
  const bad = [], links = [...document.querySelectorAll("#matrix a.mark")];
  if (links.length !== 6) bad.push(links.length + " links");
  for (const link of links) {
    const cell = document.getElementById(link.getAttribute("href").slice(1)).closest("details");
    if (cell.open) bad.push(link.href + " was open");
    link.click();
    await new Promise((done) => setTimeout(done, 30));
    if (!cell.open || cell.querySelector("table").getBoundingClientRect().height === 0) bad.push(link.href + " is not open");
  }
  return bad;
})()`, &bad)
		if len(bad) > 0 {
			t.Error(bad)
		}
	})
	b.Run("by keyboard", func(t *testing.T) {
		b.Open(path)
		b.Eval(`document.querySelector("details.cell summary").focus()`, nil)
		b.Press("Enter")
		var open bool
		if b.Eval(`document.querySelector("details.cell").open`, &open); !open {
			t.Error("Enter does not open a cell")
		}
		var seen []string
		b.Open(path)
		for range 12 {
			b.Press("Tab")
			var at string
			b.Eval(`document.activeElement.id || document.activeElement.name || document.activeElement.className || document.activeElement.tagName`, &at)
			seen = append(seen, at)
		}
		want := "[skip copy words verdict precision mode task scroll BUTTON BUTTON BUTTON BUTTON]"
		if got := fmt.Sprint(seen); got != want {
			t.Errorf("Tab goes through %v, want %v", got, want)
		}
	})
	b.Run("copy", func(t *testing.T) {
		var said string
		b.Eval(`(async () => {
  const button = document.querySelector("button.copy");
  button.click();
  await new Promise((done) => setTimeout(done, 200));
  return button.textContent;
})()`, &said)
		if said != "copied" && said != "not copied" { // a browser without a window may have no clipboard
			t.Errorf("the button says %q", said)
		}
	})
	b.Run("sort", func(t *testing.T) {
		var orders [2]string
		b.Eval(`(() => {
  const column = [...document.querySelectorAll("#matrix thead th")].findIndex((th) => th.textContent === "family");
  const order = () => [...document.querySelectorAll("#matrix tbody tr")].map((row) => row.children[column].textContent).join(" ");
  const button = document.querySelectorAll("#matrix thead th")[column].firstChild;
  button.click();
  const up = order();
  button.click();
  return [up, order()];
})()`, &orders)
		if orders[0] != "dfine resnet resnet sam yolo9" || orders[1] != "yolo9 sam resnet resnet dfine" {
			t.Errorf("%q", orders)
		}
	})
	b.Quiet()
	b.Run("filter", func(t *testing.T) { filterMany(t, b) })
	b.Run("without scripts", func(t *testing.T) { withoutScripts(t, b) })
}

// A whole run is filtered at once.
func filterMany(t *testing.T, b *pagetest.Browser) {
	b.Open(file(t, many()))
	count := func(words string, choices map[string]string) string {
		t.Helper()
		var shown string
		b.Eval(fmt.Sprintf("document.getElementById('words').value = %q; for (const s of document.querySelectorAll('#filter select')) s.value = ''", words), nil)
		for name, value := range choices {
			b.Eval(fmt.Sprintf("document.querySelector('#filter select[name=%s]').value = %q", name, value), nil)
		}
		b.Eval(`(() => {
  document.getElementById("words").dispatchEvent(new Event("input", { bubbles: true }));
  const shown = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.checkVisibility()).length;
  return [document.getElementById("shown").textContent, shown("#matrix .mark"), shown("#matrix tbody tr"), shown("details.cell")].join(", ");
})()`, &shown)
		return shown
	}
	for _, c := range []struct {
		words   string
		choices map[string]string
		want    string
	}{
		{"", nil, "141 of 141 cells, 141, 47, 141"},
		{"family07", nil, "3 of 141 cells, 3, 1, 3"},
		{"FAMILY0 bf16", nil, "10 of 141 cells, 10, 10, 10"},
		{"", map[string]string{"precision": "fp16"}, "47 of 141 cells, 47, 47, 47"},
		{"", map[string]string{"precision": "fp16", "verdict": "differs"}, "5 of 141 cells, 5, 5, 5"},
		{"", map[string]string{"task": "segment", "verdict": "refused"}, "3 of 141 cells, 3, 1, 3"},
		{"nobody", nil, "0 of 141 cells, 0, 0, 0"},
	} {
		if got := count(c.words, c.choices); got != c.want {
			t.Errorf("%q, %v: %s, want %s", c.words, c.choices, got, c.want)
		}
	}
	b.Quiet()
}

// Without scripts all is there: links open cells, and no control is shown that would do nothing.
func withoutScripts(t *testing.T, b *pagetest.Browser) {
	b.Set("Emulation.setScriptExecutionDisabled", map[string]any{"value": true})
	path := file(t, sample())
	b.Open(path)
	var shown [3]bool
	b.Eval(`[document.getElementById("filter").checkVisibility(), !!document.querySelector("button"), document.getElementById("cell-2").closest("details").open]`, &shown)
	if shown != [3]bool{} {
		t.Errorf("%v", shown)
	}
	b.OpenAt(path, "cell-2")
	var open bool
	if b.Eval(`document.getElementById("cell-2").closest("details").open`, &open); !open {
		t.Error("a link to a cell does not open it")
	}
	b.Quiet()
}

// TestScreenshots writes pictures where SAMEBITS_PAGE says, to be looked at.
func TestScreenshots(t *testing.T) {
	folder := os.Getenv("SAMEBITS_PAGE")
	if folder == "" {
		t.Skip("SAMEBITS_PAGE names no folder")
	}
	b := pagetest.NewBrowser(t)
	for name, results := range map[string][]result.Result{"sample": sample(), "many": many(), "one": {exact("yolo9", "fp32")}} {
		path := file(t, results)
		for _, dark := range []bool{false, true} {
			for _, width := range []int{1400, 360} {
				b.Dark(dark)
				b.Size(width, 900)
				b.Open(path)
				b.Eval("document.querySelectorAll('details.cell')[1] && (document.querySelectorAll('details.cell')[1].open = true)", nil)
				b.Screenshot(filepath.Join(folder, fmt.Sprintf("%s-%v-%d.png", name, dark, width)), name != "many")
			}
		}
	}
}
