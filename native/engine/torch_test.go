package engine

import (
	"strings"
	"testing"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
)

func TestRecordingsOfOtherVersionsOfTorch(t *testing.T) {
	for version, good := range map[string]bool{"2.11.0": true, "2.11.1+cu130": true, "2.11": true, "2.12.0": false, "2.1.1": false, "2.110.0": false, "": false} {
		r := turned()
		r.Header.Environment = []recording.Setting{{Key: "python", Value: "3.12"}, {Key: "torch", Value: version}}
		m, err := Load(direct{slow{calls: new([]string)}, new([]string)}, r, func(string) ([]byte, bool) { return nil, false }, Options{})
		if good {
			if err != nil {
				t.Errorf("%s: %v", version, err)
			} else if err := m.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		problems, ok := diag.Of(err)
		if !ok || len(problems) != 1 || problems[0].Reason != "OTHER_TORCH" || problems[0].Path != "header/environment/torch" || !strings.Contains(problems[0].Summary, Torch) {
			t.Errorf("%s: %v", version, err)
		}
	}
}
