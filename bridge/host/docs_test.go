package host_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"samebits/bridge/host"
)

// docs/wire.md names every reason and every variable that reaches a plugin.
func TestWireIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("errors.go")
	if err != nil {
		t.Fatal(err)
	}
	words := regexp.MustCompile(`PLUGIN_[A-Z_]+`).FindAllString(string(source), -1)
	if len(words) < 10 {
		t.Fatalf("found no reasons: %v", words)
	}
	for _, word := range append(words, host.AllowedEnv...) {
		if !strings.Contains(string(doc), "`"+word+"`") {
			t.Errorf("docs/wire.md does not name %s", word)
		}
	}
}
