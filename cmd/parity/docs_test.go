package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// told finds commands in a page: lines of code, and words between backticks.
var told = regexp.MustCompile("(?m)(?:^(?:    )?|`|&& |\\./run\\.sh )(?:bin/)?parity ([a-z][^`\n]*)")

// Every command that a document or a help text shows is there, with its flags and their kinds of values.
func TestDocumentedCommands(t *testing.T) {
	texts := map[string]string{}
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../goldens/*/README.md", "../../scripts/*.sh"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[file] = string(data)
		}
	}
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		texts[c.CommandPath()+" --help"] = strings.ReplaceAll(c.Example, "  parity", "parity")
		for _, sub := range c.Commands() {
			each(sub)
		}
	}
	each((&app{}).root())
	seen := 0
	for where, text := range texts {
		for _, m := range told.FindAllStringSubmatch(text, -1) {
			seen++
			if err := takes(m[1]); err != nil {
				t.Errorf("%s: parity %s: %v", where, m[1], err)
			}
		}
	}
	if takes("verify fake --fast") == nil || takes("verfy fake") == nil || takes("verify fake --batch many") == nil {
		t.Error("it takes anything")
	}
	if seen < 100 {
		t.Errorf("only %d commands: looking in the wrong place", seen)
	}
}

// takes parses a line as the program would, up to what a shell takes for itself.
func takes(line string) error {
	line = regexp.MustCompile(`\s(#|\||>|&&|;).*|\\\|.*|\s*\\$`).ReplaceAllString(line, "")
	words := strings.Fields(strings.NewReplacer("'", "", `"`, "").Replace(line))
	c, rest, err := (&app{}).root().Find(words)
	if err != nil {
		return err
	}
	if c.HasSubCommands() && len(rest) > 0 && rest[0][0] != '-' {
		return fmt.Errorf("%s has no %s", c.CommandPath(), rest[0])
	}
	for i, word := range rest {
		if word == "N" {
			rest[i] = "1"
		}
		if name, isFlag := strings.CutPrefix(word, "--"); isFlag && i == len(rest)-1 { // named without a value, in a sentence
			if f := c.Flag(strings.SplitN(name, "=", 2)[0]); f != nil {
				rest = rest[:i]
			}
		}
	}
	return c.ParseFlags(rest)
}
