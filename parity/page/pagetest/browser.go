package pagetest

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a browser may take for anything.
const patience = time.Minute

// Browser is a page in a Chromium without a window, driven by its DevTools protocol over a pipe: no port is opened.
type Browser struct {
	t       *testing.T
	to      *os.File
	session string

	mu      sync.Mutex
	next    int
	replies map[int]chan message
	loaded  chan struct{}
	gone    chan struct{}

	Complaints []string // errors and warnings of the console, violations of the policy, exceptions
	Requests   []string // addresses that were asked for
}

type message struct {
	ID        int             `json:"id,omitempty"`
	Method    string          `json:"method,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// Chromium finds one by SAMEBITS_CHROMIUM or in PATH; without one the test is skipped.
func Chromium(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("SAMEBITS_CHROMIUM"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium in PATH, and SAMEBITS_CHROMIUM names none: the page is not looked at in a browser")
	return ""
}

// NewBrowser starts a Chromium that ends with the test.
func NewBrowser(t *testing.T) *Browser {
	t.Helper()
	program := Chromium(t)
	theirsIn, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirsOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "samebits-browser-")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--user-data-dir="+profile)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.ExtraFiles = []*os.File{theirsIn, theirsOut} // descriptors 3 and 4
	c.WaitDelay = 5 * time.Second
	if err := c.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	_, _ = theirsIn.Close(), theirsOut.Close()
	b := &Browser{t: t, to: to, replies: map[int]chan message{}, loaded: make(chan struct{}, 16), gone: make(chan struct{})}
	go b.listen(from)
	t.Cleanup(func() {
		cancel()
		_ = c.Wait() // it was killed
		remove(t, profile)
		_, _ = to.Close(), from.Close()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// Run is t.Run of a test that uses this browser.
func (b *Browser) Run(name string, test func(t *testing.T)) {
	outer := b.t
	defer func() { b.t = outer }()
	outer.Run(name, func(t *testing.T) {
		b.t = t
		test(t)
	})
}

// Open loads a file.
func (b *Browser) Open(path string) { b.OpenAt(path, "") }

// OpenAt loads a file and goes to an element of it.
func (b *Browser) OpenAt(path, id string) {
	b.t.Helper()
	b.navigate("about:blank") // a fragment alone would not load the page again
	b.mu.Lock()
	b.Complaints, b.Requests = nil, nil
	b.mu.Unlock()
	b.navigate((&url.URL{Scheme: "file", Path: path, Fragment: id}).String())
}

func (b *Browser) navigate(to string) {
	b.t.Helper()
	for len(b.loaded) > 0 {
		<-b.loaded
	}
	b.call("Page.navigate", map[string]any{"url": to}, nil)
	select {
	case <-b.loaded:
	case <-time.After(patience):
		b.t.Fatalf("%s did not load", to)
	}
}

// Set calls a method that gives nothing of interest, as Emulation.setEmulatedMedia.
func (b *Browser) Set(method string, params map[string]any) {
	b.t.Helper()
	b.call(method, params, nil)
}

// Dark chooses the dark mode, or the light one.
func (b *Browser) Dark(dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.Set("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// Size sets that of the window.
func (b *Browser) Size(width, height int) {
	b.t.Helper()
	b.Set("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
}

// Press presses a key, as Tab or Enter.
func (b *Browser) Press(key string) {
	b.t.Helper()
	codes := map[string]int{"Tab": 9, "Enter": 13, " ": 32}
	down := map[string]any{"type": "keyDown", "key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
	switch key {
	case "Enter":
		down["text"] = "\r"
	case " ":
		down["text"], down["code"] = " ", "Space"
	}
	b.Set("Input.dispatchKeyEvent", down)
	b.Set("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key, "code": down["code"], "windowsVirtualKeyCode": codes[key]})
}

// Eval gives what a JavaScript expression, or the promise that it gives, comes to.
func (b *Browser) Eval(expression string, result any) {
	b.t.Helper()
	var reply struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Exception struct{ Description string }
		}
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &reply)
	if reply.ExceptionDetails != nil {
		b.t.Fatalf("%s\n%s", expression, reply.ExceptionDetails.Exception.Description)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(reply.Result.Value, result); err != nil {
		b.t.Fatalf("%s: %s: %v", expression, reply.Result.Value, err)
	}
}

// Screenshot writes what is seen, or all of the page, to a file.
func (b *Browser) Screenshot(path string, whole bool) {
	b.t.Helper()
	var reply struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": whole}, &reply)
	data, err := base64.StdEncoding.DecodeString(reply.Data)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// call makes a call and waits for its reply.
func (b *Browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	reply := make(chan message, 1)
	b.mu.Lock()
	b.next++
	m := message{ID: b.next, Method: method, SessionID: b.session}
	b.replies[m.ID] = reply
	b.mu.Unlock()
	if params != nil {
		m.Params = must(json.Marshal(params))
	}
	if _, err := b.to.Write(append(must(json.Marshal(m)), 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	select {
	case m = <-reply:
	case <-b.gone:
		b.t.Fatalf("%s: the browser has ended", method)
	case <-time.After(patience):
		b.t.Fatalf("%s: the browser does not answer", method)
	}
	if m.Error != nil {
		b.t.Fatalf("%s: %s", method, m.Error.Message)
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
	}
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// listen takes what the browser says until it ends.
func (b *Browser) listen(from *os.File) {
	defer close(b.gone)
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line[:len(line)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if waiting := b.replies[m.ID]; m.ID != 0 && waiting != nil {
			delete(b.replies, m.ID)
			waiting <- m
		}
		b.event(m)
		b.mu.Unlock()
	}
}

func (b *Browser) event(m message) {
	var p struct {
		Type    string
		Entry   struct{ Level, Text string }
		Args    []struct{ Value any }
		Request struct{ URL string }

		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	_ = json.Unmarshal(m.Params, &p) // of other events nothing fits
	switch m.Method {
	case "Page.loadEventFired":
		select {
		case b.loaded <- struct{}{}:
		default:
		}
	case "Runtime.exceptionThrown":
		b.Complaints = append(b.Complaints, p.ExceptionDetails.Text+" "+p.ExceptionDetails.Exception.Description)
	case "Runtime.consoleAPICalled":
		b.Complaints = append(b.Complaints, fmt.Sprint(p.Type, ": ", p.Args))
	case "Log.entryAdded":
		b.Complaints = append(b.Complaints, p.Entry.Level+": "+p.Entry.Text)
	case "Network.requestWillBeSent":
		b.Requests = append(b.Requests, p.Request.URL)
	}
}

// Quiet holds if the page complained of nothing and asked for nothing but itself.
func (b *Browser) Quiet() {
	b.t.Helper()
	time.Sleep(50 * time.Millisecond) // events come behind replies
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.Complaints {
		b.t.Errorf("the browser says: %s", c)
	}
	for i, r := range b.Requests {
		if i > 0 || !strings.HasPrefix(r, "file://") {
			b.t.Errorf("the page asked for %s", r)
		}
	}
}

// contrast lists texts that are seen and cannot be read well: less than 4.5 to 1 from what lies behind them, or 3 to 1 where they
// are large (WCAG 2.2, 1.4.3).
const contrast = `(() => {
  const parse = (color) => (color.match(/[\d.]+/g) || []).map(Number);
  const solid = (c) => c.length >= 3 && (c.length < 4 || c[3] > 0);
  const luminance = (c) => {
    const [r, g, b] = c.slice(0, 3).map((x) => (x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (solid(c)) return c;
    }
    return [255, 255, 255];
  };
  const painted = (shape) => {
    const style = getComputedStyle(shape);
    return parse(style.fill === "none" ? style.stroke : style.fill);
  };
  const bad = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let count = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    if (!node.data.trim() || ["SCRIPT", "STYLE", "OPTION", "title"].includes(element.tagName) || element.closest(".unseen")) continue;
    if (!element.checkVisibility()) continue;
    const style = getComputedStyle(element), drawn = element instanceof SVGElement;
    const front = parse(drawn ? style.fill : style.color);
    const back = drawn && element.classList.contains("inside") ? painted(element.previousElementSibling) : behind(element);
    const [high, low] = [luminance(front), luminance(back)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05), size = parseFloat(style.fontSize);
    const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700;
    count++;
    if (ratio < (large ? 3 : 4.5)) bad.set(element.tagName + "." + element.getAttribute("class") + " " + front + " on " + back, ratio.toFixed(2) + " " + node.data.trim().slice(0, 40));
  }
  return { count, bad: [...bad].map((x) => x.join(": ")) };
})()`

// Contrast holds if every text that is shown can be read.
func (b *Browser) Contrast(atLeast int) {
	b.t.Helper()
	var found struct {
		Count int
		Bad   []string
	}
	b.Eval(contrast, &found)
	if found.Count < atLeast {
		b.t.Errorf("only %d texts are shown", found.Count)
	}
	for _, bad := range found.Bad {
		b.t.Errorf("contrast: %s", bad)
	}
}

// Fits holds if the page as a whole does not scroll sideways: wide tables and plots do so in their own frames. Width is the
// window's.
func (b *Browser) Fits(width int) {
	b.t.Helper()
	var wide []string
	b.Eval(fmt.Sprintf(`(() => {
  if (document.documentElement.scrollWidth <= %[1]d) return [];
  const wide = [...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > %[1]d && !e.parentElement.closest(".scroll, svg"))
    .map((e) => e.tagName + "." + e.getAttribute("class") + " ends at " + e.getBoundingClientRect().right + ": " + e.textContent.trim().slice(0, 40));
  return wide.length ? wide : ["something that lies out of its frame ends at " + document.documentElement.scrollWidth];
})()`, width), &wide)
	for _, w := range wide[:min(len(wide), 5)] {
		b.t.Errorf("the page is wider than %d: %s", width, w)
	}
}

// remove deletes a browser's folder, into which its other processes may write until they have noticed that they were killed.
func remove(t *testing.T, folder string) {
	var err error
	for range 100 {
		if err = os.RemoveAll(folder); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error(err)
}
