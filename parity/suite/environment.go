package suite

import (
	"context"
	"maps"
	"path/filepath"
	"strings"

	"samebits/bridge/recording"
)

// describe notes the environment of one side, the first time that it is asked.
func (v *verification) describe(ctx context.Context, a Arm, side string) error {
	v.describing.Lock() // arms of one side may get here at the same time
	defer v.describing.Unlock()
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

// settings gives the environment of a side, as far as it was asked.
func (v *verification) settings(side string) []recording.Setting {
	v.describing.Lock()
	defer v.describing.Unlock()
	return v.environment[side]
}

// mergedEnvironment gives one map of both sides. Where they disagree, the plain key is the reference's and native's has
// its side in front.
func (v *verification) mergedEnvironment() map[string]string {
	merged := map[string]string{}
	for _, s := range v.environment[reference] {
		merged[s.Key] = strings.TrimSpace(s.Value)
	}
	for _, s := range v.environment[native] {
		key, value := s.Key, strings.TrimSpace(s.Value)
		if other, both := merged[key]; both && other != value {
			key = native + "." + key
		}
		merged[key] = value
	}
	for key, value := range merged {
		if strings.HasSuffix(key, ".path") {
			merged[key] = portable(value)
		}
	}
	maps.Copy(merged, v.suite.Programs)
	if v.suite.EngineBuild != "" {
		merged["engine_build"] = v.suite.EngineBuild
	}
	return merged
}

// portable says which library a path is without saying where this machine has it: of a Python package's, its place in the package.
func portable(path string) string {
	if _, inside, found := strings.Cut(path, "/site-packages/"); found {
		return inside
	}
	return filepath.Base(path)
}
