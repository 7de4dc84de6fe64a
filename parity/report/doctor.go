package report

import (
	"fmt"
	"io"
	"strings"

	"samebits/parity/doctor"
)

// Doctor writes what the doctor found.
func Doctor(w io.Writer, r doctor.Report) error {
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-8s %s", c.State, c.Name)
		if c.Value != "" {
			fmt.Fprintf(&b, ": %s", c.Value)
		}
		b.WriteByte('\n')
		for _, line := range c.Details {
			fmt.Fprintf(&b, "           %s\n", strings.TrimSpace(line))
		}
		if c.Prevents != "" {
			fmt.Fprintf(&b, "           prevents %s\n", c.Prevents)
		}
	}
	switch {
	case !r.Ready():
		b.WriteString("\nNothing can be verified here yet.\n")
	default:
		fmt.Fprintf(&b, "\nparity verify can run on %s.\n", strings.Join(r.Devices, ", "))
	}
	if !strings.Contains(strings.Join(r.Devices, " "), "cuda:") {
		b.WriteString("Only a GPU can prove a family exact.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
