package benchpage

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"samebits/parity/page/pagetest"
)

// The page in a real browser: nothing is complained of or asked for, and text can be read in both modes and at each width.
func TestBrowser(t *testing.T) {
	b := pagetest.NewBrowser(t)
	source, _ := render(t, sample())
	path := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(path, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, dark := range []bool{false, true} {
		for _, width := range []int{1400, 360} {
			b.Run(fmt.Sprintf("dark %v, %d wide", dark, width), func(t *testing.T) {
				b.Dark(dark)
				b.Size(width, 900)
				b.Open(path)
				b.Eval("for (const d of document.querySelectorAll('details')) d.open = true", nil)
				b.Contrast(200)
				b.Fits(width)
				b.Quiet()
			})
		}
	}
}
