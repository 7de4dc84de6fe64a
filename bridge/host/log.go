package host

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Line is one line that a plugin, or a library inside it, wrote.
type Line struct {
	Time   time.Time
	Plugin string
	Level  slog.Level
	Source string // log, stderr, stdout
	Text   string // without control characters
}

// maxLine is where longer lines are broken.
const maxLine = 16 << 10

// journal hands lines to a sink and keeps the last ones for errors.
type journal struct {
	plugin string
	keep   int

	emit sync.Mutex // one line at a time reaches the sink
	sink func(Line)

	mu    sync.Mutex
	last  []string
	crash []string // the first lines of the last crash: a long stack would push them out of last
}

// crashLines is how much is kept from where a crash begins.
const crashLines = 8

// crashSigns begin what Go, Python and C libraries print when they die.
var crashSigns = []string{"panic: ", "fatal error: ", "SIG", "Traceback (most recent", "Fatal Python error", "terminate called",
	"Assertion ", "*** "}

func beginsCrash(line string) bool {
	return slices.ContainsFunc(crashSigns, func(sign string) bool { return strings.HasPrefix(line, sign) })
}

func (j *journal) add(level slog.Level, source, text string) {
	text = printable(text)
	if text == "" {
		return
	}
	j.mu.Lock()
	if len(j.last) == j.keep {
		j.last = j.last[1:]
	}
	j.last = append(j.last, text)
	switch begins := beginsCrash(text); {
	case begins && (len(j.crash) == 0 || len(j.crash) == crashLines):
		j.crash = []string{text}
	case len(j.crash) > 0 && len(j.crash) < crashLines:
		j.crash = append(j.crash, text)
	}
	j.mu.Unlock()
	if j.sink != nil {
		j.emit.Lock()
		defer j.emit.Unlock()
		j.sink(Line{Time: time.Now(), Plugin: j.plugin, Level: level, Source: source, Text: text})
	}
}

// tail gives the last lines, and before them where a crash began, should that be further back.
func (j *journal) tail() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.crash) == crashLines && !slices.Contains(j.last, j.crash[0]) {
		return slices.Concat(j.crash, []string{"…"}, j.last)
	}
	return slices.Clone(j.last)
}

// follow reads lines until the end of r and gives each to take.
func follow(r *bufio.Reader, take func(string)) {
	for {
		line, err := nextLine(r)
		if line != "" {
			take(line)
		}
		if err != nil {
			return
		}
	}
}

// nextLine reads a line, or the first maxLine bytes of a longer one.
func nextLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	return strings.TrimRight(string(line), "\r\n"), err
}

func newLineReader(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, maxLine) }

func (j *journal) stdout(line string) { j.add(slog.LevelInfo, "stdout", line) }

// stderr takes a line of the plugin's own log (JSON as hclog writes it) or of anything else.
func (j *journal) stderr(line string) {
	if level, text, ok := parseEntry(line); ok {
		j.add(level, "log", text)
		return
	}
	j.add(guessLevel(line), "stderr", line)
}

// parseEntry reads hclog's JSON, as bridge/serve and samebits_wire write it.
func parseEntry(line string) (slog.Level, string, bool) {
	if !strings.HasPrefix(line, "{") {
		return 0, "", false
	}
	var entry map[string]any
	if json.Unmarshal([]byte(line), &entry) != nil {
		return 0, "", false
	}
	message, isText := entry["@message"].(string)
	name, hasLevel := entry["@level"].(string)
	if !isText || !hasLevel {
		return 0, "", false
	}
	level := map[string]slog.Level{"trace": slog.LevelDebug - 4, "debug": slog.LevelDebug, "warn": slog.LevelWarn, "error": slog.LevelError}[name]
	var b strings.Builder
	b.WriteString(message)
	for _, key := range slices.Sorted(maps.Keys(entry)) {
		if !strings.HasPrefix(key, "@") {
			fmt.Fprintf(&b, " %s=%v", key, entry[key])
		}
	}
	return level, b.String(), true
}

func guessLevel(line string) slog.Level {
	if beginsCrash(line) || strings.HasPrefix(line, "[ERROR]") || strings.HasPrefix(line, "ERROR") {
		return slog.LevelError
	}
	if strings.HasPrefix(line, "[WARN]") || strings.Contains(line, "Warning: ") || strings.HasPrefix(line, "WARNING") {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// printable drops what would move a terminal's cursor or colour the rest of the screen.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if (r < ' ' && r != '\t') || r == 0x7f || (r >= 0x80 && r < 0xa0) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
