package result

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"samebits/bridge/atomicfile"
)

// Name is the file name of a result without its folder: detect-yolo9-t-640-b1-predict-fp32-cuda.json. The number of the
// GPU is left out; seed and profile are there if they are not the usual ones, and gates that
// were judged alone.
func (r Result) Name() string {
	device, _, _ := strings.Cut(r.Device, ":")
	name := fmt.Sprintf("%s-%s-%s-%d-b%d-%s-%s-%s", r.Task, r.Family, r.Size, r.ImgSize, r.Batch, r.Mode, r.Precision, device)
	if r.Seed != 0 {
		name += fmt.Sprintf("-s%d", r.Seed)
	}
	if r.Profile != "exact-1" {
		name += "-" + r.Profile
	}
	for _, id := range r.Asked {
		name += "-" + string(id)
	}
	return name + ".json"
}

// Keep writes r as indented JSON under its name in dir and gives the path.
func (r Result) Keep(dir string) (string, error) {
	path := filepath.Join(dir, r.Name())
	return path, atomicfile.Write(path, r.Encode)
}

// Encode writes r as indented JSON.
func (r Result) Encode(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
