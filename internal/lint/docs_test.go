package lint

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// pages are all Markdown files of the repository with their text, by their paths below its root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(name, ".") || name == "build" || name == "dist" || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) == ".md" {
			found[filepath.ToSlash(name)] = read(t, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 15 {
		t.Fatalf("only %d pages: looking in the wrong place", len(found))
	}
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fenced   = regexp.MustCompile("(?ms)^```.*?^```")
	notAWord = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	reasonID = regexp.MustCompile("`([A-Z0-9]+(?:_[A-Z0-9]+)+)`")
)

// anchors are the names by which a page's headings are linked to.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		all[strings.ReplaceAll(notAWord.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return all
}

func TestLinks(t *testing.T) {
	all := pages(t)
	for page, text := range all {
		for _, l := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			to, anchor, _ := strings.Cut(l[1], "#")
			target := page
			if to != "" {
				target = path.Join(path.Dir(page), to)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", page, l[1])
			} else if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", page, l[1], target)
			}
		}
	}
}

func TestReadmeListsDocuments(t *testing.T) {
	readme := read(t, "README.md")
	for page := range pages(t) {
		if path.Dir(page) == "docs" && !strings.Contains(readme, "| ["+page+"]("+page+") |") {
			t.Errorf("README.md does not list %s", page)
		}
	}
}

// The table of docs/architecture.md names every package.
func TestArchitectureNamesPackages(t *testing.T) {
	text := read(t, "docs/architecture.md")
	named := map[string]bool{}
	for _, words := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text[:strings.Index(text, "## 1.")], -1) {
		named[path.Base(words[1])] = true
	}
	seen := map[string]bool{}
	for _, f := range sources(t) {
		if folder := path.Dir(f.path); !seen[folder] {
			seen[folder] = true
			if !named[path.Base(folder)] {
				t.Errorf("docs/architecture.md does not name %s", folder)
			}
		}
	}
}

// docs/gates.md has every reason of a gate, and no others.
func TestGatesPageHasReasons(t *testing.T) {
	page := read(t, "docs/gates.md")
	code := read(t, "parity/gate/gate.go") + read(t, "bridge/certificate/gates.go")
	declared := map[string]bool{}
	for _, m := range regexp.MustCompile(`Reason\s+= "([A-Z0-9_]+)"`).FindAllStringSubmatch(code, -1) {
		declared[m[1]] = true
		if !strings.Contains(page, "`"+m[1]+"`") {
			t.Errorf("docs/gates.md lacks the reason %s", m[1])
		}
	}
	if len(declared) < 50 {
		t.Fatalf("only %d reasons: looking in the wrong place", len(declared))
	}
	for _, line := range strings.Split(page, "\n") {
		if first, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | "); row && strings.HasPrefix(line, "| ") {
			for _, m := range reasonID.FindAllStringSubmatch(first, -1) {
				if !declared[m[1]] {
					t.Errorf("docs/gates.md has the reason %s, and no gate has it", m[1])
				}
			}
		}
	}
}
