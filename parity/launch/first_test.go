package launch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"samebits/bridge/arm"
	"samebits/bridge/host"
)

func TestFirstReference(t *testing.T) {
	root := t.TempDir()
	said := `{"stages": [{"name": "start", "ms": 20}, {"name": "forward", "ms": 1.5}], "max_rss_bytes": 4096, "outputs": {"output": "ab"}}`
	script(t, filepath.Join(root, ".venv/bin/python"), `echo "$@" >>`+root+"/asked; echo '"+said+"'")
	l := launcher(t, Options{}, root, nil)
	reply, err := l.FirstReference(t.Context(), First{Weights: "w", Images: "i",
		Build: arm.BuildRequest{Family: "yolo9", Size: "t", Precision: "bf16", Device: "cuda:0", ImgSize: 320, Batch: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if reply.Finished.Microseconds() != 21500 || reply.MaxRSS != 4096 || reply.Outputs["output"] != "ab" || reply.Stages[1].Name != "forward" {
		t.Errorf("reply %+v", reply)
	}
	asked, err := os.ReadFile(filepath.Join(root, "asked"))
	want := "-m samebits_reference.first --weights w --images i --family yolo9 --size t --precision bf16 --device cuda:0 --seed 0 --imgsz 320 --batch 2 --began "
	if err != nil || !strings.HasPrefix(string(asked), want) {
		t.Errorf("asked %q, %v", asked, err)
	}
}

func TestFirstReferenceFails(t *testing.T) {
	for name, c := range map[string]struct{ says, want string }{
		"a refusal":     {"echo NO_CUDA: there is none >&2; exit 2", "NO_CUDA"},
		"no JSON":       {"echo hello", "invalid character"},
		"no time":       {`echo '{"outputs": {"output": "ab"}}'`, "took 0s"},
		"no prediction": {`echo '{"stages": [{"name": "start", "ms": 20}]}'`, "0 outputs"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			script(t, filepath.Join(root, ".venv/bin/python"), c.says)
			_, err := launcher(t, Options{}, root, nil).FirstReference(t.Context(), First{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
			var broken *host.Error
			if name == "a refusal" && !errors.As(err, &broken) {
				t.Errorf("it is a %T", err)
			}
		})
	}
}

// A folder for compiled kernels reaches the plugin, which nothing else of the environment does.
func TestNativeIn(t *testing.T) {
	root := t.TempDir()
	script(t, filepath.Join(root, "bin/samebits-predictor"), `echo "SAMEBITS_CACHE=$SAMEBITS_CACHE" >`+root+"/environment; exit 7")
	if _, err := launcher(t, Options{}, root, nil).NativeIn(t.Context(), "/kernels", nil); err == nil {
		t.Error("no error")
	}
	environment, err := os.ReadFile(filepath.Join(root, "environment"))
	if err != nil || !strings.Contains(string(environment), "SAMEBITS_CACHE=/kernels\n") {
		t.Errorf("%v, environment %s", err, environment)
	}
}
