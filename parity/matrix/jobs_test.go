package matrix

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPlan(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name    string
		machine Machine
		jobs    int
		want    Plan
	}{
		{"a server", Machine{16, 120 * gib, true, 140 * gib}, 0, Plan{4, true, 12, 2, 4, 128 * gib}},
		{"a larger one", Machine{128, 500 * gib, true, 200 * gib}, 0, Plan{4, true, 124, 2, 4, 188 * gib}},
		{"as many as are asked for", Machine{16, 120 * gib, true, 140 * gib}, 2, Plan{2, true, 12, 1, 4, 136 * gib}},
		{"a small GPU, four at once", Machine{16, 64 * gib, true, 24 * gib}, 4, Plan{4, true, 12, 2, 4, 12 * gib}},
		{"a small GPU, twenty at once", Machine{16, 64 * gib, true, 24 * gib}, 20, Plan{20, true, 12, 10, 4, 12 * gib}},
		{"a small GPU", Machine{16, 64 * gib, true, 24 * gib}, 0, Plan{1, true, 12, 1, 4, 0}},
		{"too small a GPU", Machine{16, 64 * gib, true, 8 * gib}, 0, Plan{1, false, 12, 1, 4, 0}},
		{"little memory", Machine{16, 8 * gib, true, 24 * gib}, 0, Plan{1, false, 12, 1, 4, 0}},
		{"few cores", Machine{2, 64 * gib, true, 24 * gib}, 0, Plan{1, true, 1, 1, 1, 0}},
		{"one core", Machine{1, 64 * gib, true, 24 * gib}, 0, Plan{1, false, 1, 1, 1, 0}},
		{"nobody knows the memory", Machine{16, 0, true, 0}, 0, Plan{4, true, 12, 2, 4, 0}},
		{"no GPU", Machine{16, 64 * gib, false, 0}, 0, Plan{1, false, 16, 1, 0, 0}},
		{"no GPU, three at once", Machine{16, 64 * gib, false, 0}, 3, Plan{3, false, 16, 1, 5, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.machine.Plan(c.jobs); got != c.want {
				t.Errorf("%+v instead of %+v", got, c.want)
			}
		})
	}
}

func TestMemory(t *testing.T) {
	if m := ThisMachine(); m.Cores < 1 || m.Memory < 1<<20 {
		t.Errorf("%+v", m)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := limitOf(dir); got != 0 {
		t.Errorf("no group: %d", got)
	}
	write("memory.max", "max\n")
	if got := limitOf(dir); got != 0 {
		t.Errorf("no limit: %d", got)
	}
	write("memory.max", "1000\n")
	write("memory.stat", "anon 300\nfile 600\nshmem 100\n")
	if got := limitOf(dir); got != 600 {
		t.Errorf("%d left of 1000", got)
	}
}
