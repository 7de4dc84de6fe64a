package samebits

import (
	"os"
	"strings"
	"testing"
)

func TestSettings(t *testing.T) {
	const changed, removed, kept = "SAMEBITS_TEST_CHANGED", "SAMEBITS_TEST_REMOVED", "SAMEBITS_TEST_KEPT"
	for _, name := range []string{changed, removed, kept} {
		t.Setenv(name, "before")
	}
	variables := `{"` + changed + `":"after","` + removed + `":null}`
	for _, want := range []bool{true, false} {
		if did, err := Settings(variables); err != nil || did != want {
			t.Fatalf("changed: %v, %v; want %v", did, err, want)
		}
	}
	if got := os.Getenv(changed); got != "after" {
		t.Errorf("%s is %q", changed, got)
	}
	if got, set := os.LookupEnv(removed); set {
		t.Errorf("%s is %q", removed, got)
	}
	if got := os.Getenv(kept); got != "before" {
		t.Errorf("%s is %q", kept, got)
	}
	if _, err := Settings(`{"":"no name"}`); err == nil {
		t.Error("a variable without a name was set")
	} else if !strings.Contains(err.Error(), "WRONG_SETTING") {
		t.Error(err)
	}
}
