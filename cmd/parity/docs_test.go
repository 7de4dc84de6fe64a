package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// Every flag that a document names by itself is one of a command.
func TestDocumentedFlags(t *testing.T) {
	var has func(c *cobra.Command, flag string) bool
	has = func(c *cobra.Command, flag string) bool {
		return c.Flag(flag) != nil || slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return has(sub, flag) })
	}
	root := (&app{}).root()
	others := []string{"help", "fmad"} // every command's, and NVRTC's
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`--([a-z][a-z-]*)")
	seen := 0
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(data), -1) {
			if seen++; !has(root, m[1]) && !slices.Contains(others, m[1]) {
				t.Errorf("%s: no command has the flag --%s", file, m[1])
			}
		}
	}
	if seen < 80 {
		t.Errorf("only %d flags: looking in the wrong place", seen)
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
