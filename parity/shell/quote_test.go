package shell

import (
	"os/exec"
	"testing"
)

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"": "''", "yolo9_e2e": "yolo9_e2e", "birefnet@whole": "birefnet@whole", "cuda:0": "cuda:0", "fp32,bf16": "fp32,bf16", "a/b-1.json": "a/b-1.json",
		"a b": "'a b'", "it's": `'it'\''s'`, "yolo*": "'yolo*'", "$(rm)": "'$(rm)'", "a;b": "'a;b'", "~": "'~'", "a\nb": "'a\nb'", "é": "'é'", "=x": "'=x'",
		"[a]": "'[a]'", "{a,b}": "'{a,b}'", "a&b": "'a&b'", "#a": "'#a'", "!a": "'!a'", `a\b`: `'a\b'`,
	} {
		got := Quote(word)
		if got != want {
			t.Errorf("%q is quoted as %s, not %s", word, got, want)
		}
		if said, err := exec.Command("sh", "-c", "printf %s "+got).Output(); err != nil || string(said) != word {
			t.Errorf("a shell takes %s for %q, %v", got, said, err)
		}
	}
}
