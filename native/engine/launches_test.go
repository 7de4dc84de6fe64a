package engine

import (
	"fmt"
	"strings"
	"testing"
)

func TestLaunchList(t *testing.T) {
	m := loadDirect(t, direct{slow{calls: new([]string)}, new([]string)})
	l := m.LaunchList()
	if err := l.Check(); err != nil {
		t.Fatal(err)
	}
	if len(l.Kind) != m.Launches() || len(l.Kinds) == 0 || !strings.HasPrefix(l.Kinds[l.Kind[0]], "kernel ") {
		t.Errorf("%+v of %d launches", l, m.Launches())
	}
	for i, c := range m.plan.Step {
		if kind := launchKind(c); l.Kinds[l.Kind[i]] != kind || kind == "other" {
			t.Errorf("launch %d is %s, and is called %s", i, fmt.Sprintf("%T", c), l.Kinds[l.Kind[i]])
		}
	}
}
