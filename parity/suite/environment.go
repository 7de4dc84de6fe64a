package suite

import (
	"context"
	"strings"

	"samebits/bridge/recording"
)

// describe notes the environment of one side, the first time that it is asked.
func (v *verification) describe(ctx context.Context, a Arm, side string) error {
	if v.environment[side] != nil {
		return nil
	}
	d, err := a.Describe(ctx)
	if err != nil {
		return err
	}
	v.environment[side] = append([]recording.Setting{}, d.Environment...)
	return nil
}

// mergedEnvironment gives one map of both sides: where they disagree, or one alone knows a key that both should, the key
// has the side in front.
func (v *verification) mergedEnvironment() map[string]string {
	merged := map[string]string{}
	sides := map[string]map[string]string{reference: {}, native: {}}
	for side, settings := range v.environment {
		for _, s := range settings {
			sides[side][s.Key] = s.Value
		}
	}
	for key, value := range sides[reference] {
		other, both := sides[native][key]
		if both && other != value {
			merged[reference+"."+key], merged[native+"."+key] = value, other
			continue
		}
		merged[key] = value
	}
	for key, value := range sides[native] {
		if _, both := sides[reference][key]; !both {
			merged[key] = value
		}
	}
	if v.suite.EngineBuild != "" {
		merged["engine_build"] = v.suite.EngineBuild
	}
	for key, value := range merged {
		merged[key] = strings.TrimSpace(value)
	}
	return merged
}
