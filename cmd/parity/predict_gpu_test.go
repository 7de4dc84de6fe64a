//go:build gpu

package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
)

// On a GPU the native graph predicts exactly what LibreYOLO does with eager PyTorch.
func TestPredictOnGPU(t *testing.T) {
	root := t.TempDir()
	program := build(t, root, "parity", ".")
	build(t, root, "samebits-predictor", "../../plugins/predictor")
	for _, c := range [][]string{
		{"resnet"}, {"yolo9", "--imgsz", "640", "--conf", "0.01", "--max-det", "50"}, {"segformer", "--imgsz", "512"},
		{"rtmdet", "--task", "segment", "--conf", "0.01", "--max-det", "20", "--masks", "rle"}, {"birefnet", "--imgsz", "256"},
		{"birefnet", "--imgsz", "256", "--precision", "bf16"}, {"resnet", "--batch", "2"}, {"yolo9", "--precision", "bf16", "--conf", "0.01"},
	} {
		t.Run(c[0], func(t *testing.T) {
			var all [][]map[string]any
			folder := t.TempDir()
			for _, arm := range []string{"reference-eager", "reference-graph", "native-eager", "native-graph"} {
				args := append([]string{"predict", c[0], "goldens/images", "--device", "cuda:0", "--arm", arm, "-o", folder}, c[1:]...)
				cmd := exec.Command(program, args...)
				cmd.Dir = filepath.Join("..", "..")
				var stdout, stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				if err := cmd.Run(); err != nil {
					t.Fatalf("%v: %v\n%s", args, err, stderr.String())
				}
				var lines []map[string]any
				for decoder := json.NewDecoder(&stdout); decoder.More(); {
					var line map[string]any
					if err := decoder.Decode(&line); err != nil {
						t.Fatal(err)
					}
					if line["arm"] != arm {
						t.Errorf("%s ran as %v", arm, line["arm"])
					}
					delete(line, "arm")
					delete(line, "ms")
					lines = append(lines, line)
				}
				all = append(all, lines)
			}
			for i, lines := range all {
				if len(lines) != 2 || !reflect.DeepEqual(lines, all[0]) {
					t.Errorf("arm %d: %v\nreference-eager: %v", i, lines, all[0])
				}
			}
		})
	}
}
