package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/native/device"
	"samebits/native/host"
	"samebits/native/ops"
)

// Recordings of real models, kept outside the tree, planned without running them. Set
//
//	SAMEBITS_RECORDINGS  a folder of recordings, *.pb or *.pb.xz, or a pattern of their paths
//	SAMEBITS_PEAKS       a file with lines "CELL ... peak MIB": what the reference needed
//	SAMEBITS_PREPARE=1   also has the host device prepare each plan, which compiles all kernels and checks their launches
//
// and run this test with -v. It fails if anything is refused, and lists each refused signature once.
func TestRecordings(t *testing.T) {
	pattern := os.Getenv("SAMEBITS_RECORDINGS")
	if pattern == "" {
		t.Skip("SAMEBITS_RECORDINGS names no recordings")
	}
	if info, err := os.Stat(pattern); err == nil && info.IsDir() {
		pattern = filepath.Join(pattern, "*.pb*")
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings %s: %v", pattern, err)
	}
	var dev device.Device
	if os.Getenv("SAMEBITS_PREPARE") != "" {
		if dev, err = host.Open(); err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
	}
	peaks := readPeaks(t)
	refused := refusals{}
	for _, file := range files {
		cell := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".xz"), ".pb")
		r := readRecording(t, file)
		p := planWhole(r, refused, cell)
		oneLane, _ := planAll(r, Options{OneLane: true})
		if _, err := p.Place(workspaces(p.Step)); err != nil {
			t.Error(err)
		}
		const mib = 1 << 20
		line := fmt.Sprintf("%-32s fixed %7.1f  arena %7.1f  lanes %d  fused %d  one lane without workspaces %7.1f  widest %7.1f", cell,
			float64(p.FixedBytes)/mib, float64(p.ArenaBytes)/mib, p.Schedule.Lanes, p.Fused, float64(oneLane.plan.ArenaBytes)/mib, float64(p.widest())/mib)
		for i, bytes := range workspaces(p.Setup) {
			if bytes > 0 {
				line += fmt.Sprintf("  set-up has %T", p.Setup[i])
				break
			}
		}
		if peak, ok := peaks[cell]; ok {
			line += fmt.Sprintf("  reference %5d  rest %8.1f", peak, float64(peak)-float64(p.FixedBytes+p.ArenaBytes)/mib)
		}
		t.Log(line)
		if dev != nil {
			prepare(t, dev, p, cell)
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(refused), func(a, b string) int {
		return cmp.Or(len(refused[b])-len(refused[a]), cmp.Compare(a, b))
	}) {
		t.Errorf("%s\n    %d recordings: %s", name, len(refused[name]), strings.Join(refused[name], " "))
	}
}

// refusals are the recordings in which a signature is refused.
type refusals map[string][]string

func (r refusals) add(signature, cell string) {
	if list := r[signature]; len(list) == 0 || list[len(list)-1] != cell {
		r[signature] = append(list, cell)
	}
}

// planWhole is Make, but goes on with what can be planned.
func planWhole(r *recording.Recording, refused refusals, cell string) *Plan {
	p, problems := planAll(r, Options{})
	for i := range r.Operations {
		if p.known[i].Name == "" {
			refused.add("unknown: "+r.Operations[i].Name, cell)
		}
	}
	for _, problem := range problems {
		var i int
		if _, err := fmt.Sscanf(problem.Path, "operations[%d]", &i); err != nil {
			refused.add(problem.Summary, cell)
			continue
		}
		refused.add(r.Signature(&r.Operations[i])+"\n    "+problem.Summary, cell)
	}
	return p.plan
}

// planAll takes unknown operations for ones without commands.
func planAll(r *recording.Recording, options Options) (p *planner, problems diag.Problems) {
	p = &planner{options: options, plan: &Plan{Recording: r, Ranges: make([]Range, len(r.Operations))}}
	p.lookup(&problems)
	for i := range p.known {
		if p.known[i].Name == "" {
			p.known[i] = ops.Registration{Lower: func(*ops.Builder, *recording.Operation) error { return nil }}
		}
	}
	problems = nil
	p.fuse()
	p.classify()
	p.lifetimes()
	p.lower(&problems)
	p.plan.Tail = len(p.plan.Step)
	p.finish()
	return p, problems
}

// workspaces are those that do not depend on the GPU: what PyTorch gives cuBLAS and cuBLASLt.
func workspaces(list []device.Command) []int64 {
	bytes := make([]int64, len(list))
	for i, c := range list {
		switch c.(type) {
		case *device.Matmul, *device.MatVec:
			bytes[i] = 32 << 20
		case *device.Linear:
			bytes[i] = 1 << 20
		}
	}
	return bytes
}

// widest is the most memory that is in use at one time if operations run one after the other: no placement needs less.
func (p *Plan) widest() int64 {
	change, before := make([]int64, len(p.Recording.Operations)+2), int64(0)
	for s := range p.Storages {
		st := &p.Storages[s]
		if st.Area != Arena {
			continue
		}
		from, to := 0, len(change)-1
		if !st.always && len(st.uses) > 0 {
			from, to = st.uses[0], st.uses[len(st.uses)-1]+1
		}
		if st.once {
			before += align(st.Bytes) // while weights are loaded
			continue
		}
		change[from] += align(st.Bytes)
		change[to] -= align(st.Bytes)
	}
	most, now := before, int64(0)
	for _, c := range change {
		now += c
		most = max(most, now)
	}
	return most
}

func prepare(t *testing.T, dev device.Device, p *Plan, cell string) {
	t.Helper()
	resolve := func(at device.Pointer) uintptr {
		area, offset, _ := p.Slot(at)
		return uintptr(area)<<40 + uintptr(offset)
	}
	for _, list := range [][]device.Command{p.Setup, p.Step} {
		program, err := dev.Prepare(list, resolve, device.Options{Deterministic: true})
		if err != nil {
			t.Errorf("%s: %v", cell, err)
			continue
		}
		if err := program.Close(); err != nil {
			t.Error(err)
		}
	}
}

func readRecording(t *testing.T, file string) *recording.Recording {
	t.Helper()
	data, err := os.ReadFile(file)
	if strings.HasSuffix(file, ".xz") {
		data, err = exec.Command("xz", "-dc", file).Output()
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	r, err := recording.Decode(data)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return r
}

func readPeaks(t *testing.T) map[string]int64 {
	t.Helper()
	peaks := map[string]int64{}
	file := os.Getenv("SAMEBITS_PEAKS")
	if file == "" {
		return peaks
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^(\S+) .*\bpeak (\d+)`)
	for _, l := range bytes.Split(data, []byte("\n")) {
		if m := line.FindSubmatch(l); m != nil {
			peaks[string(m[1])], _ = strconv.ParseInt(string(m[2]), 10, 64)
		}
	}
	return peaks
}
