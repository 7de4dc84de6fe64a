package result

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"samebits/bridge/arm"
)

func TestNewLaunches(t *testing.T) {
	for name, c := range map[string]struct {
		list arm.LaunchList
		want *Launches
	}{
		"none":            {arm.LaunchList{Kinds: []string{"kernel a"}}, nil},
		"no such kind":    {arm.LaunchList{Kinds: []string{"kernel a"}, Kind: []uint8{1}}, nil},
		"lanes of others": {arm.LaunchList{Kinds: []string{"kernel a"}, Kind: []uint8{0}, Lane: []uint8{0, 1}}, nil},
		"too long":        {arm.LaunchList{Kinds: []string{"kernel a"}, Kind: make([]uint8, 1<<17+1)}, nil},
		"no name":         {arm.LaunchList{Kinds: []string{"", strings.Repeat("x", 101)}, Kind: []uint8{0, 1, 1}}, &Launches{Kinds: []string{"other", "other"}, Order: "BAA"}},
		"one lane":        {arm.LaunchList{Kinds: []string{"kernel a"}, Kind: []uint8{0, 0}}, &Launches{Kinds: []string{"kernel a"}, Order: "AA"}},
		"by number, then by name": {arm.LaunchList{Kinds: []string{"z", "never", "b", "c"}, Kind: []uint8{3, 0, 2, 3}, Lane: []uint8{0, 12, 1, 0}},
			&Launches{Kinds: []string{"c", "b", "z"}, Order: "ACBA", Lanes: "0910"}},
	} {
		if got := NewLaunches(c.list); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestManyKinds(t *testing.T) {
	var list arm.LaunchList
	for i := range 200 {
		list.Kinds = append(list.Kinds, fmt.Sprintf("kernel %03d", i))
		list.Kind = append(list.Kind, uint8(i))
	}
	l := NewLaunches(list)
	if len(l.Kinds) != len(Letters) || l.Kinds[63] != "other" || strings.Count(l.Order, "-") != 200-63 || l.Kinds[62] != "kernel 062" {
		t.Errorf("%+v", l)
	}
}
