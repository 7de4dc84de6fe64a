package reduce

import (
	"fmt"
	"io"
	"strings"
)

// Text says for people what was found.
func (c *Culprit) Text(w io.Writer, dir string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%soperation %d of %d: %s\n", ofStep(c.Step), c.Operation, c.Of, c.Signature)
	if from := strings.TrimSpace(c.Module + " " + c.Source); from != "" {
		fmt.Fprintf(&b, "  from %s\n", from)
	}
	fmt.Fprintf(&b, "  result %d: %v\n", c.Result, &c.Bits)
	most := int64(1)
	for _, bucket := range c.Histogram {
		most = max(most, bucket.Count)
	}
	for _, bucket := range c.Histogram {
		span := fmt.Sprint(bucket.Least)
		if bucket.Most != bucket.Least {
			span += " to " + fmt.Sprint(bucket.Most)
		}
		fmt.Fprintf(&b, "  %24s ULP %10d %s\n", span, bucket.Count, strings.Repeat("#", int((bucket.Count*40+most-1)/most)))
	}
	if c.NaN > 0 {
		fmt.Fprintf(&b, "  %24s     %10d\n", "NaN on one side", c.NaN)
	}
	switch {
	case c.Alone:
		fmt.Fprintf(&b, "  by itself, on the reference's operands, it differs, too: %s\n", c.Detail)
	case c.Detail != "":
		fmt.Fprintf(&b, "  %s\n", c.Detail)
	default:
		b.WriteString("  by itself, on the reference's operands, it does not differ: look at what is fused; parity reduce finds the operations\n")
	}
	fmt.Fprintf(&b, "  kept in %s\n", dir)
	_, err := io.WriteString(w, b.String())
	return err
}

// Text says for people what is left.
func (p *Part) Text(w io.Writer, dir, device string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%d of %d operations are left after %d tests: %s\n", ofStep(p.Step), len(p.Operations), p.Of, p.Tests, p.Detail)
	for i, at := range p.Operations {
		o := &p.Recording.Operations[i]
		fmt.Fprintf(&b, "  %5d  %s\n", at, p.Recording.Signature(o))
		if from := strings.TrimSpace(o.Module + " " + o.Source); from != "" {
			fmt.Fprintf(&b, "         from %s\n", from)
		}
	}
	if device == "host" {
		device = "cpu"
	}
	fmt.Fprintf(&b, "  kept in %s; in plain PyTorch: python %s/run.py %s\n", dir, dir, device)
	_, err := io.WriteString(w, b.String())
	return err
}

func ofStep(step int) string {
	if step == 0 {
		return ""
	}
	return fmt.Sprintf("step %d, ", step)
}
