package host

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

func TestJournalKeepsWhereACrashBegan(t *testing.T) {
	j := &journal{plugin: "p", keep: 5}
	j.stderr("panic: first, caught")
	for i := range 20 {
		j.stderr(fmt.Sprintf("goroutine %d", i))
	}
	j.stderr("fatal error: the real one")
	for i := range 100 {
		j.stderr(fmt.Sprintf("stack %d", i))
	}
	tail := j.tail()
	if tail[0] != "fatal error: the real one" || tail[1] != "stack 0" || tail[len(tail)-1] != "stack 99" || !slices.Contains(tail, "…") {
		t.Errorf("%q", tail)
	}
	if len(tail) != crashLines+1+5 {
		t.Errorf("%d lines", len(tail))
	}
}

// Without a crash, or with one among the last lines, they alone are kept. Lines without text are none.
func TestJournalKeepsTheLastLines(t *testing.T) {
	for _, c := range []struct {
		name         string
		written, can []string
	}{
		{"few", []string{"a", "", "\x1b", "b"}, []string{"a", "b"}},
		{"more than it keeps", []string{"a", "b", "c", "d", "e", "f"}, []string{"b", "c", "d", "e", "f"}},
		{"a crash among them", []string{"a", "b", "panic: p", "c", "d"}, []string{"a", "b", "panic: p", "c", "d"}},
	} {
		j := &journal{plugin: "p", keep: 5}
		for _, line := range c.written {
			j.stderr(line)
		}
		if got := j.tail(); !slices.Equal(got, c.can) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	j := &journal{plugin: "p", keep: 20}
	written := []string{"before", "panic: p"}
	for i := range 2 * crashLines {
		written = append(written, fmt.Sprintf("stack %d", i))
	}
	for _, line := range written {
		j.stderr(line)
	}
	if got := j.tail(); !slices.Equal(got, written) {
		t.Errorf("a long crash that is kept whole: %q", got)
	}
}

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		line  string
		level slog.Level
		text  string
	}{
		{`{"@level":"warn","@message":"slow","b":2,"a":"x"}`, slog.LevelWarn, "slow a=x b=2"},
		{`{"@level":"trace","@message":"t"}`, slog.LevelDebug - 4, "t"},
		{`{"@level":"nonsense","@message":"t"}`, slog.LevelInfo, "t"},
		{`{"@level":7,"@message":["t"]}`, slog.LevelInfo, `{"@level":7,"@message":["t"]}`},
		{`{"torn`, slog.LevelInfo, `{"torn`},
		{"/x/y.py:3: UserWarning: old", slog.LevelWarn, "/x/y.py:3: UserWarning: old"},
		{"[WARN] old", slog.LevelWarn, "[WARN] old"},
		{"WARNING: old", slog.LevelWarn, "WARNING: old"},
		{"[ERROR] broken", slog.LevelError, "[ERROR] broken"},
		{"ERROR: broken", slog.LevelError, "ERROR: broken"},
		{`{"@level":"error","@message":"m"}`, slog.LevelError, "m"},
		{`{"@level":"debug","@message":"m","@module":"x"}`, slog.LevelDebug, "m"},
		{`{"@message":"m"}`, slog.LevelInfo, `{"@message":"m"}`},
		{"a\u009bb\x7fc", slog.LevelInfo, "abc"},
		{"Traceback (most recent call last):", slog.LevelError, "Traceback (most recent call last):"},
		{"\x1b[2J\x07tab\there\xff", slog.LevelInfo, "[2Jtab\there\uFFFD"},
	} {
		t.Run(c.line, func(t *testing.T) {
			var got Line
			j := &journal{plugin: "p", keep: 5, sink: func(l Line) { got = l }}
			j.stderr(c.line)
			if got.Level != c.level || got.Text != c.text || got.Plugin != "p" {
				t.Errorf("got %v %q", got.Level, got.Text)
			}
		})
	}
}

func TestLineWriter(t *testing.T) {
	var got []string
	w := &lineWriter{take: func(s string) { got = append(got, s) }}
	for _, part := range []string{"a", "b\nc\n\nd", strings.Repeat("e", maxLine), "\n"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	want := []string{"ab", "c", "", "d" + strings.Repeat("e", maxLine), ""}
	if !slices.Equal(got, want) {
		t.Errorf("got %d lines, want %d: %.60q", len(got), len(want), got)
	}
}
