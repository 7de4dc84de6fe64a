package cuda

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lukechampine.com/blake3"

	"samebits/bridge/atomicfile"
)

// PlansVariable turns the cache of cuDNN's choices off, if it is set to anything but 1 or on. Heuristics are asked each
// time then.
const PlansVariable = "SAMEBITS_PLAN_CACHE"

// keepsPlans reports whether PlansVariable leaves the cache on.
func keepsPlans() bool {
	switch os.Getenv(PlansVariable) {
	case "", "1", "on":
		return true
	}
	return false
}

// planChoice is what cuDNN chose for a convolution.
type planChoice struct {
	Convolution string `json:"convolution"` // convolution.String
	Engine      string `json:"engine"`      // with its knobs: ConvFwd_eng70_k2=12_k18=0
	Workspace   int64  `json:"workspace"`
	Heuristic   string `json:"heuristic"` // instant 1 of 2, 4 proposed
}

// String is what Choices tells.
func (c planChoice) String() string {
	return fmt.Sprintf("%s workspace=%d %s", c.Engine, c.Workspace, c.Heuristic)
}

// planCache keeps what was chosen for each convolution, so that loading a model asks no heuristic, which takes cuDNN
// milliseconds each. A text file for each identity of GPU, driver and library build is only ever added to, a line a choice;
// of two for one convolution the later counts. Nothing in it is trusted: a line has a checksum of itself and the identity,
// and a choice must build into what it was and run. The cache never fails: what is wrong is chosen again.
//
// Its methods are called under Device.mu.
type planCache struct {
	path     string // empty: nothing is kept
	identity string
	log      func(line string)

	choices map[string]planChoice // by convolution; nil: not read yet
	fresh   []planChoice          // not written yet
}

const (
	plansMagic   = "samebits-plans-1 "
	checksumSize = 2 * 16
	// A file of more bytes than this is none of ours: a choice takes some 400.
	mostPlanBytes = 64 << 20
)

func newPlanCache(folder, identity string, log func(line string)) *planCache {
	c := &planCache{identity: identity, log: log}
	if folder != "" {
		sum := blake3.Sum256([]byte(identity))
		c.path = filepath.Join(folder, "cudnn-"+hex.EncodeToString(sum[:8])+".plans")
	}
	return c
}

// get gives the choice for a convolution.
func (c *planCache) get(convolution string) (planChoice, bool) {
	if c.path == "" {
		return planChoice{}, false
	}
	if c.choices == nil {
		c.load()
	}
	choice, ok := c.choices[convolution]
	return choice, ok
}

// drop forgets a choice that turned out wrong.
func (c *planCache) drop(choice planChoice, why error) {
	delete(c.choices, choice.Convolution)
	c.log(fmt.Sprintf("cuDNN's choice %s for %s is not used, asking again: %v", choice, choice.Convolution, why))
}

// put keeps a choice until flush writes it.
func (c *planCache) put(choice planChoice) {
	if c.path == "" || !choice.valid() {
		return
	}
	if c.choices == nil {
		c.load()
	}
	c.choices[choice.Convolution] = choice
	c.fresh = append(c.fresh, choice)
}

// flush adds what is new to the file, in one write, so that lines of processes that do the same do not mix.
func (c *planCache) flush() {
	if len(c.fresh) == 0 {
		return
	}
	err := c.add(c.fresh)
	c.fresh = nil
	if err != nil {
		c.log(fmt.Sprintf("cuDNN's choices are not kept: %v", err))
		c.path = ""
	}
}

func (c *planCache) add(choices []planChoice) error {
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(c.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.Write(c.text(choices, info.Size() == 0))
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// text is what a file has of choices; the first line says for people whose they are.
func (c *planCache) text(choices []planChoice, first bool) []byte {
	var b bytes.Buffer
	if first {
		b.WriteString(c.header() + "\n")
	}
	for _, choice := range choices {
		b.WriteString(c.line(choice) + "\n")
	}
	return b.Bytes()
}

func (c *planCache) header() string { return plansMagic + c.identity }

func (c *planCache) line(choice planChoice) string {
	text, err := json.Marshal(choice)
	if err != nil {
		panic(err) // there is nothing in it that JSON has not
	}
	return c.checksum(text) + " " + string(text)
}

func (c *planCache) checksum(text []byte) string {
	sum := blake3.Sum256(slices.Concat([]byte(c.header()), []byte{'\n'}, text))
	return hex.EncodeToString(sum[:checksumSize/2])
}

// load reads the file, and writes it anew without what is damaged.
func (c *planCache) load() {
	c.choices = map[string]planChoice{}
	info, err := os.Stat(c.path)
	if os.IsNotExist(err) {
		return
	}
	var data []byte
	if err == nil && info.Size() > mostPlanBytes {
		err = fmt.Errorf("%d bytes", info.Size())
	}
	if err == nil {
		data, err = os.ReadFile(c.path)
	}
	if err != nil {
		c.log(fmt.Sprintf("cuDNN's choices in %s are unreadable, asking again: %v", c.path, err))
		c.repair()
		return
	}
	lines := strings.Split(string(data), "\n")
	damaged := 0
	for i, line := range lines {
		if line == "" && i == len(lines)-1 || line == c.header() {
			continue
		}
		choice, ok := c.parse(line)
		if !ok {
			damaged++
			continue
		}
		c.choices[choice.Convolution] = choice
	}
	if damaged > 0 {
		c.log(fmt.Sprintf("cuDNN's choices in %s: %d damaged of %d lines, asking again for theirs", c.path, damaged, len(lines)))
	}
	if damaged > 0 || lines[len(lines)-1] != "" { // the next line would be added to one without an end
		c.repair()
	}
}

func (c *planCache) parse(line string) (choice planChoice, ok bool) {
	checksum, text, _ := strings.Cut(line, " ")
	if checksum != c.checksum([]byte(text)) || json.Unmarshal([]byte(text), &choice) != nil {
		return choice, false
	}
	return choice, choice.valid()
}

// repair writes the choices at hand into a file that takes the old one's place. What another process adds to that one
// meanwhile is lost, and chosen again.
func (c *planCache) repair() {
	var list []planChoice
	for _, choice := range c.choices {
		list = append(list, choice)
	}
	slices.SortFunc(list, func(a, b planChoice) int { return strings.Compare(a.Convolution, b.Convolution) })
	if err := atomicfile.WriteCache(c.path, c.text(list, true)); err != nil {
		c.log(fmt.Sprintf("cuDNN's choices are not kept: %v", err))
		c.path = ""
	}
}

// valid reports whether a choice can be built anew: nothing is missing, nothing was cut off.
func (c planChoice) valid() bool {
	engine, err := parseEngine(c.Engine)
	return err == nil && len(c.Engine) < mostEngineText && len(engine.knobs) <= mostKnobs && c.Workspace >= 0 &&
		c.Convolution != "" && c.Heuristic != ""
}

// engine is a cuDNN engine with its knobs, as the tags of cudnn_frontend have them.
type engine struct {
	operation string
	index     int64
	knobs     []knob
}

type knob struct {
	kind  uint32
	value int64
}

var (
	engineText = regexp.MustCompile(`^([A-Za-z]+)_eng([0-9]+)((?:_k[0-9]+=-?[0-9]+)*)$`)
	knobText   = regexp.MustCompile(`_k([0-9]+)=(-?[0-9]+)`)
)

func parseEngine(text string) (engine, error) {
	parts := engineText.FindStringSubmatch(text)
	if parts == nil {
		return engine{}, fmt.Errorf("%q is no engine", text)
	}
	out := engine{operation: parts[1]}
	var err error
	if out.index, err = strconv.ParseInt(parts[2], 10, 64); err != nil {
		return engine{}, fmt.Errorf("%q: %w", text, err)
	}
	for _, part := range knobText.FindAllStringSubmatch(parts[3], -1) {
		kind, err := strconv.ParseUint(part[1], 10, 32)
		if err != nil {
			return engine{}, fmt.Errorf("%q: %w", text, err)
		}
		value, err := strconv.ParseInt(part[2], 10, 64)
		if err != nil {
			return engine{}, fmt.Errorf("%q: %w", text, err)
		}
		out.knobs = append(out.knobs, knob{uint32(kind), value})
	}
	return out, nil
}

// equal compares knobs in any order.
func (e engine) equal(other engine) bool {
	sorted := func(list []knob) []knob {
		list = slices.Clone(list)
		slices.SortFunc(list, func(a, b knob) int { return int(int64(a.kind) - int64(b.kind)) })
		return list
	}
	return e.operation == other.operation && e.index == other.index && slices.Equal(sorted(e.knobs), sorted(other.knobs))
}
