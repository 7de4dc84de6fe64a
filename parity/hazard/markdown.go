package hazard

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"samebits/parity/gate"
)

// Markdown is the table of cases as docs/selftest.md has it.
func Markdown() string {
	var b strings.Builder
	for _, section := range slices.Sorted(maps.Keys(Sections)) {
		fmt.Fprintf(&b, "### %s: %s\n\n| case | family | must be | reason | needs |\n|---|---|---|---|---|\n", section, Sections[section])
		for _, c := range Cases {
			if c.Section != section {
				continue
			}
			title := fmt.Sprintf("**%s** %s (%s)", c.ID, c.Title, links(c))
			if c.LeftOut != "" {
				fmt.Fprintf(&b, "| %s | left out | | %s | |\n", title, c.LeftOut)
			}
			for _, p := range c.Plants {
				needs := "host"
				if p.NeedsGPU {
					needs = "cuda"
				}
				if p.Untried {
					needs += "; on a GPU untried"
				}
				fmt.Fprintf(&b, "| %s | `%s` | `%s` | %s | %s |\n", title, p.Family, p.Verdict, reasons(p), needs)
				title = ""
			}
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func links(c Case) string {
	var all []string
	for i, url := range c.URLs() {
		all = append(all, fmt.Sprintf("[%d](%s)", i+1, url))
	}
	return strings.Join(all, " ")
}

func reasons(p Plant) string {
	quoted := func(all []gate.Reason) string {
		var texts []string
		for _, r := range all {
			texts = append(texts, "`"+string(r)+"`")
		}
		return strings.Join(texts, " or ")
	}
	text := quoted(p.Reasons)
	if p.OnGPU != "" {
		text += ", on a GPU " + quoted([]gate.Reason{p.OnGPU})
	}
	return text
}
