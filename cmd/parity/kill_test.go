package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"samebits/parity/gate"
	"samebits/parity/launch"
	"samebits/parity/result"
)

// killsVariable asks for more kills than the usual few; killsLog names a file that gets a line for each.
const (
	killsVariable = "SAMEBITS_KILLS"
	killsLog      = "SAMEBITS_KILLS_LOG"
)

// Kills between two undisturbed ends of a campaign.
const chain = 5

// patience is how long is waited for what must happen, however slow the machine is. Nothing is judged by time.
const patience = 10 * time.Minute

// A campaign whose host, plugins or zygote are killed at any moment leaves no process behind, keeps what is finished, and is
// completed by --resume with the results of an undisturbed one.
func TestKilled(t *testing.T) {
	if os.Getenv(launch.PythonVariable) == "" || testing.Short() {
		t.Skipf("needs an interpreter with PyTorch in %s, and minutes", launch.PythonVariable)
	}
	kills := chain
	if text := os.Getenv(killsVariable); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := newCrime(t, rand.New(rand.NewPCG(seed, 0)))
	c.undisturbed()
	for n := 0; n < kills; {
		if !c.kill(n + 1) {
			continue
		}
		if n++; (n%chain == 0 || n == kills) && !c.completed {
			c.complete()
		}
	}
}

// crime is a campaign with what is known of it.
type crime struct {
	*testing.T
	random *rand.Rand
	root   string // its plugins' temporary folder lies there, by which its processes are known

	calls   int                      // of the undisturbed run
	want    map[string]result.Result // its results, by file
	left    []string                 // what it leaves in the temporary folder
	log     *os.File                 // nil: nobody wants it
	stderr  bytes.Buffer
	running *exec.Cmd

	completed bool // since the latest kill
}

func newCrime(t *testing.T, random *rand.Rand) *crime {
	t.Helper()
	c := &crime{T: t, random: random}
	var err error
	if c.root, err = os.MkdirTemp("", "kill-"); err != nil { // short: sockets lie below it
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(c.root); err != nil {
			t.Error(err)
		}
	})
	build(t, c.root, "parity", ".")
	build(t, c.root, "samebits-predictor", "../../plugins/predictor")
	for _, dir := range []string{c.temporary(), c.output()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if path := os.Getenv(killsLog); path != "" {
		if c.log, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.log.Close() })
	}
	return c
}

func (c *crime) temporary() string { return filepath.Join(c.root, "tmp") }
func (c *crime) output() string    { return filepath.Join(c.root, "results") }
func (c *crime) callsFile() string { return filepath.Join(c.root, "calls") }

// start begins the campaign, or goes on with it.
func (c *crime) start() {
	c.Helper()
	if err := os.RemoveAll(c.callsFile()); err != nil {
		c.Fatal(err)
	}
	c.running = exec.Command(filepath.Join(c.root, "bin", "parity"), "verify", "fomo", "--imgsz", "32", "--precision", "fp32,bf16",
		"--device", "host", "--jobs", "2", "--output", c.output(), "--resume", "--calls", c.callsFile())
	c.running.Dir = filepath.Join("..", "..") // where the reference plugin's packages are
	c.running.Env = append(os.Environ(), "TMPDIR="+c.temporary())
	c.stderr.Reset()
	c.running.Stderr = &c.stderr
	if err := c.running.Start(); err != nil {
		c.Fatal(err)
	}
}

// end waits for the program and gives its exit status; -1 if it was killed.
func (c *crime) end() int {
	c.Helper()
	ended := make(chan error, 1)
	go func() { ended <- c.running.Wait() }()
	select {
	case err := <-ended:
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			c.Fatal(err)
		}
		return c.running.ProcessState.ExitCode()
	case <-time.After(patience):
		for _, p := range c.processes() {
			c.Logf("process %d: %s", p.pid, p.command)
		}
		_ = c.running.Process.Kill()
		c.Fatalf("it does not end\n%s", c.stderr.String())
		return 0
	}
}

// undisturbed runs the campaign to learn what it gives.
func (c *crime) undisturbed() {
	c.Helper()
	c.start()
	if status := c.end(); status != 0 {
		c.Fatalf("status %d\n%s", status, c.stderr.String())
	}
	c.calls = c.countCalls()
	c.want = c.results()
	c.left = names(c.T, c.temporary())
	if len(c.want) != 2 || c.calls < 50 {
		c.Fatalf("%d results after %d calls\n%s", len(c.want), c.calls, c.stderr.String())
	}
	for _, name := range c.left {
		if strings.HasPrefix(name, "samebits") {
			c.Errorf("it leaves %s", name)
		}
	}
	c.empty()
}

// empty throws the results away, so that the campaign begins anew.
func (c *crime) empty() {
	c.Helper()
	for _, name := range names(c.T, c.output()) {
		if err := os.Remove(filepath.Join(c.output(), name)); err != nil {
			c.Fatal(err)
		}
	}
}

// kill begins or goes on, kills somebody at some moment, and looks at what is left. It reports whether there was still somebody.
func (c *crime) kill(n int) bool {
	c.Helper()
	c.completed = false
	todo := len(c.want) - len(c.results())
	c.start()
	after := c.random.IntN(c.calls * todo / len(c.want))
	for c.countCalls() < after && !c.over() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Duration(c.random.IntN(200)) * time.Millisecond) // into a call
	victims, whom := c.choose()
	at := c.countCalls()
	if c.over() {
		whom = "nobody: it was over"
	}
	for _, pid := range victims {
		_ = syscall.Kill(pid, syscall.SIGKILL) // who has ended already is dead, too
	}
	status := c.end()
	hostKilled := slices.Contains(victims, c.running.Process.Pid) && status == -1
	if !hostKilled && status != 0 && status != 3 {
		c.Errorf("kill %d of %s: status %d\n%s", n, whom, status, c.stderr.String())
	}
	c.nobody(whom)
	finished := c.results()
	for file, r := range finished {
		if why := differs(r, c.want[file]); why != "" {
			c.Errorf("kill %d of %s: %s: %s", n, whom, file, why)
		}
	}
	var left []string
	for _, name := range names(c.T, c.temporary()) {
		if !slices.Contains(c.left, name) {
			// A minute must pass before a folder whose lock was not there yet, or not any more, counts as nobody's.
			if err := os.Chtimes(filepath.Join(c.temporary(), name), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				c.Error(err)
			}
			left = append(left, regexp.MustCompile(`[0-9]+$`).ReplaceAllString(name, "*"))
		}
	}
	c.note("kill %2d: %-32s after %3d of %3d calls, status %2d, %d of %d cells finished, for the next start to remove: %v",
		n, whom, at, c.calls, status, len(finished), len(c.want), left)
	if len(finished) == len(c.want) { // it was borne, or too late
		c.complete()
	}
	return !strings.HasPrefix(whom, "nobody")
}

// complete lets the campaign come to its end, which is that of the undisturbed one.
func (c *crime) complete() {
	c.Helper()
	before := len(c.results())
	c.start()
	if status := c.end(); status != 0 {
		c.Errorf("resumed: status %d\n%s", status, c.stderr.String())
	}
	c.nobody("nobody")
	if said := fmt.Sprintf("%d of %d cells are finished already", before, len(c.want)); !strings.Contains(c.stderr.String(), said) {
		c.Errorf("it does not say that %s\n%s", said, c.stderr.String())
	}
	got := c.results()
	for file, want := range c.want {
		r, has := got[file]
		if !has {
			c.Errorf("%s is missing", file)
		} else if why := differs(r, want); why != "" {
			c.Errorf("%s: %s", file, why)
		}
	}
	left := names(c.T, c.temporary())
	if !slices.Equal(left, c.left) {
		c.Errorf("%v is left, where an undisturbed run leaves %v", left, c.left)
	}
	c.note("resumed: %d of %d cells were finished, all results are those of the undisturbed run, nothing is left: %t", before, len(c.want), !c.Failed())
	c.empty()
	c.completed = true
}

func (c *crime) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	c.Log(line)
	if c.log != nil {
		fmt.Fprintln(c.log, line)
	}
}

// countCalls is how far the program has come, whatever time that took.
func (c *crime) countCalls() int {
	data, _ := os.ReadFile(c.callsFile()) // there is none at first
	return bytes.Count(data, []byte("\n"))
}

// over reports whether the program has ended; it is not reaped yet.
func (c *crime) over() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.running.Process.Pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(rest, "Z")
}

// results reads what is finished. There is nothing else in the folder, and all of it is whole.
func (c *crime) results() map[string]result.Result {
	c.Helper()
	found := map[string]result.Result{}
	for _, name := range names(c.T, c.output()) {
		r, err := result.Read(filepath.Join(c.output(), name))
		if err != nil || r.Name() != name {
			c.Errorf("%s is no result: %v", name, err)
			continue
		}
		found[name] = r
	}
	return found
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// differs says in what a result is not the undisturbed run's. Times are another matter, and so is what depends on them.
func differs(got, want result.Result) string {
	outcomes := func(r result.Result) map[gate.ID]gate.Outcome {
		all := map[gate.ID]gate.Outcome{}
		for id, f := range r.Gates {
			all[id] = f.Outcome
		}
		return all
	}
	switch {
	case got.Verdict != want.Verdict:
		return fmt.Sprintf("%s instead of %s: %s", got.Verdict, want.Verdict, got.Summary)
	case !reflect.DeepEqual(got.Digests, want.Digests):
		return "other digests"
	case !reflect.DeepEqual(outcomes(got), outcomes(want)):
		return fmt.Sprintf("gates %v instead of %v", outcomes(got), outcomes(want))
	}
	return ""
}

// being is a process of the campaign.
type being struct {
	pid     int
	born    uint64
	command string
}

// processes lists those of the campaign, the program itself among them: by its temporary folder, which all have in their
// environment. Zombies have none.
func (c *crime) processes() []being {
	c.Helper()
	var all []being
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		c.Fatal(err)
	}
	for _, path := range paths {
		environment, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, environment...), []byte("\x00TMPDIR="+c.temporary())) {
			continue
		}
		dir := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // it may have ended meanwhile
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 20 || fields[0] == "Z" {
			continue
		}
		born, err := strconv.ParseUint(fields[19], 10, 64)
		if err != nil {
			c.Fatal(err)
		}
		all = append(all, being{pid, born, strings.TrimSpace(string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))})
	}
	slices.SortFunc(all, func(a, b being) int { return int(int64(a.born) - int64(b.born)) })
	return all
}

// choose takes the host, one plugin, the zygote, or several at once.
func (c *crime) choose() (victims []int, whom string) {
	c.Helper()
	host := c.running.Process.Pid
	zygote := 0
	var plugins []int
	for _, p := range c.processes() {
		switch {
		case p.pid == host:
		case zygote == 0 && strings.Contains(p.command, "samebits_reference.zygote"): // the oldest: the others are its forks
			zygote = p.pid
		default:
			plugins = append(plugins, p.pid)
		}
	}
	c.random.Shuffle(len(plugins), func(i, j int) { plugins[i], plugins[j] = plugins[j], plugins[i] })
	some := func(n int) []int { return plugins[:min(n, len(plugins))] }
	switch way := c.random.IntN(6); {
	case way == 1 && len(plugins) > 0:
		return some(1), "a plugin"
	case way == 2 && zygote != 0:
		return []int{zygote}, "the zygote"
	case way == 3 && len(plugins) > 1:
		n := 2 + c.random.IntN(len(plugins)-1)
		return some(n), fmt.Sprintf("%d plugins", len(some(n)))
	case way == 4 && zygote != 0 && len(plugins) > 0:
		return append(some(1), zygote), "a plugin and the zygote"
	case way == 5 && len(plugins) > 0:
		n := 1 + c.random.IntN(len(plugins))
		return append(slices.Clone(some(n)), host), fmt.Sprintf("%d plugins, then the host", len(some(n)))
	}
	return []int{host}, "the host"
}

// nobody waits until no process of the campaign is left: nor is its shared memory, which has no name and goes with them.
func (c *crime) nobody(whom string) {
	c.Helper()
	var left []being
	for end := time.Now().Add(patience / 5); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if left = c.processes(); len(left) == 0 {
			return
		}
	}
	for _, p := range left {
		c.Errorf("killed was %s, and process %d lives: %s", whom, p.pid, p.command)
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	}
}
