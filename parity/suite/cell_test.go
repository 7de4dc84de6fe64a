package suite_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"samebits/parity/suite"
)

// What a shell makes of a cell's flags are its names, whatever these are.
func TestFlagsGoThroughAShell(t *testing.T) {
	for _, name := range []string{"yolo9", "birefnet@whole", "it's;a$(family)", "a|b", "*"} {
		c := suite.Cell{Family: name, Size: name, Task: name, Precision: "fp32", Profile: name, Device: "cuda:0"}
		out, err := exec.Command("sh", "-c", `printf '%s\n' `+c.Flags()).Output()
		want := []string{name, "--size", name, "--task", name, "--batch", "1", "--precision", "fp32", "--profile", name, "--seed", "0", "--device", "cuda:0"}
		if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %q", c.Flags(), err, got)
		}
	}
	if flags := (suite.Cell{Family: "birefnet@whole", Device: "cuda:0"}).Flags(); flags != "birefnet@whole --batch 1 --seed 0 --device cuda:0" {
		t.Errorf("more is quoted than must be: %s", flags)
	}
}
