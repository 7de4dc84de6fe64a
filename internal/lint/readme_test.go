package lint

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the tables of results anew")

const (
	tableStart = "<!-- results: go test ./internal/lint -rewrite -->\n"
	tableEnd   = "<!-- end of results -->"
)

// measured is a committed result.
type measured struct {
	Task, Family, Size, Mode, Precision, Verdict string
	ImgSize                                      int `json:"imgsz"`
	Batch                                        int
	Timings                                      map[string]struct {
		Median float64 `json:"median_ms"`
	}
	Memory map[string]struct {
		Peak float64 `json:"peak_bytes"`
	}
}

func (r measured) ms(arm string) float64 { return r.Timings[arm].Median }

// ratio compares native's graph with PyTorch's; NaN where they were not measured.
func (r measured) ratio() float64 { return part(r.ms("native-graph"), r.ms("reference-graph")) }

// memory compares their peaks of device memory.
func (r measured) memory() float64 {
	return part(r.Memory["native-graph"].Peak, r.Memory["reference-graph"].Peak)
}

// part is a quotient of two measured numbers; NaN where one is missing.
func part(of, whole float64) float64 {
	if of == 0 || whole == 0 {
		return math.NaN()
	}
	return of / whole
}

// cell writes a number, or that there is none: no least or greatest of nothing, too.
func cell(number float64) string {
	if number == 0 || math.IsNaN(number) || math.IsInf(number, 0) {
		return "-"
	}
	return fmt.Sprintf("%.2f", number)
}

func results(t *testing.T) []measured {
	t.Helper()
	files, err := filepath.Glob("../../goldens/results/*-cuda.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no results: %v", err)
	}
	all := make([]measured, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &all[i]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return all
}

// The README's summary and the whole table say what goldens/results says.
func TestResultTables(t *testing.T) {
	all := results(t)
	checkTable(t, "../../README.md", summary(all))
	checkTable(t, "../../goldens/results/README.md", table(all))
}

// summary has a row for each mode and precision.
func summary(all []measured) string {
	groups := map[string][]measured{}
	for _, r := range all {
		key := r.Mode + " | " + r.Precision
		groups[key] = append(groups[key], r)
	}
	var rows []string
	for key, group := range groups {
		count := map[string]int{}
		logs, timed, best, worst, most := 0.0, 0, math.Inf(1), 0.0, 0.0
		for _, r := range group {
			count[r.Verdict]++
			if ratio := r.ratio(); !math.IsNaN(ratio) {
				logs += math.Log(ratio)
				timed++
				best, worst = min(best, ratio), max(worst, ratio)
			}
			if memory := r.memory(); !math.IsNaN(memory) {
				most = max(most, memory)
			}
		}
		rows = append(rows, fmt.Sprintf("| %s | %d | %d | %d | %s | %s | %s | %s |\n", key, len(group), count["exact"], count["refused"],
			cell(math.Exp(logs/float64(timed))), cell(best), cell(worst), cell(most)))
	}
	sort.Strings(rows)
	return "| mode | precision | results | exact | refused | time of native's graph / PyTorch's, geometric mean | least | greatest | memory, greatest |\n" +
		"|---|---|---|---|---|---|---|---|---|\n" + strings.Join(rows, "")
}

// table has a row for each result.
func table(all []measured) string {
	var rows []string
	for _, r := range all {
		rows = append(rows, fmt.Sprintf("| %s | %s | %s-%s | %d | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.Mode, r.Task,
			r.Family, r.Size, r.ImgSize, r.Batch, r.Precision, r.Verdict, cell(r.ms("reference-eager")), cell(r.ms("reference-graph")),
			cell(r.ms("native-eager")), cell(r.ms("native-graph")), cell(r.ratio()), cell(r.memory())))
	}
	sort.Strings(rows)
	return "| mode | task | family | imgsz | batch | precision | verdict | PyTorch eager | PyTorch graph | native eager | native graph | graph ratio | memory ratio |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|\n" + strings.Join(rows, "")
}

func checkTable(t *testing.T, file, table string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), tableStart)
	have, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table between %q and %q", file, tableStart, tableEnd)
	}
	if have == table {
		return
	}
	if !*rewrite {
		t.Fatalf("%s is not what the files in goldens/results say; run: go test ./internal/lint -rewrite", file)
	}
	if err := os.WriteFile(file, []byte(before+tableStart+table+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
