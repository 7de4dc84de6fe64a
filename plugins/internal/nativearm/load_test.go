package nativearm

import (
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
	"samebits/native/plan"
)

func TestPlanOptions(t *testing.T) {
	tests := map[recording.Setting]plan.Options{
		{Key: "hoist", Value: "off"}: {NoHoist: true},
		{Key: "lanes", Value: "off"}: {OneLane: true},
		{Key: "fuse", Value: "off"}:  {NoFuse: true},
		{Key: "norms", Value: "off"}: {LibraryNorms: true},
		{Key: "keep", Value: "all"}:  {KeepAll: true},
		{Key: "fuse", Value: "on"}:   {},
	}
	for setting, want := range tests {
		got, err := PlanOptions([]recording.Setting{setting})
		if err != nil {
			t.Errorf("%v: %v", setting, err)
		}
		if got.NoHoist != want.NoHoist || got.OneLane != want.OneLane || got.NoFuse != want.NoFuse ||
			got.LibraryNorms != want.LibraryNorms || got.KeepAll != want.KeepAll {
			t.Errorf("%v gives %+v", setting, got)
		}
	}
	_, err := PlanOptions([]recording.Setting{{Key: "fuse", Value: "perhaps"}})
	if problems, ok := diag.Of(err); !ok || problems[0].Reason != "UNKNOWN_OPTION" {
		t.Errorf("an unknown value gives %v", err)
	}
}
