package lint

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the README's table of results anew")

const (
	tableStart = "<!-- results: go test ./internal/lint -rewrite -->\n"
	tableEnd   = "<!-- end of results -->"
)

// The README's table says what goldens/results says.
func TestReadmeResults(t *testing.T) {
	files, err := filepath.Glob("../../goldens/results/*-cuda.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no results: %v", err)
	}
	var rows []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r struct {
			Family, Size, Mode, Precision, Verdict string
			ImgSize                                int `json:"imgsz"`
			Batch                                  int
			Timings                                map[string]struct {
				Median float64 `json:"median_ms"`
			}
		}
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		ms := func(arm string) float64 { return r.Timings[arm].Median }
		rows = append(rows, fmt.Sprintf("| %s | %s-%s | %d | %d | %s | %s | %.2f | %.2f | %.2f | %.2f | %.2f |\n", r.Mode, r.Family, r.Size,
			r.ImgSize, r.Batch, r.Precision, r.Verdict, ms("reference-eager"), ms("reference-graph"), ms("native-eager"),
			ms("native-graph"), ms("native-graph")/ms("reference-graph")))
	}
	sort.Strings(rows)
	table := "| mode | family | imgsz | batch | precision | verdict | PyTorch eager | PyTorch graph | native eager | native graph | graph ratio |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n" + strings.Join(rows, "")

	const readme = "../../README.md"
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableStart)
	have, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("README.md has no table between %q and %q", tableStart, tableEnd)
	}
	if have == table {
		return
	}
	if !*rewrite {
		t.Fatalf("the README's table is not what goldens/results says; run: go test ./internal/lint -rewrite")
	}
	if err := os.WriteFile(readme, []byte(before+tableStart+table+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
