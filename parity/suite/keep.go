package suite

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"samebits/bridge/atomicfile"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor"
	"samebits/parity/gate"
	"samebits/parity/probe"
)

// Write puts a recording's files into dir: recording.pb, weights.safetensors, and recording.txt for reading.
func (r *Recorded) Write(dir string) error {
	if err := makeFolder(dir); err != nil {
		return err
	}
	for name, data := range map[string][]byte{"recording.pb": r.File, "weights.safetensors": r.Weights} {
		if err := write(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	return atomicfile.Write(filepath.Join(dir, "recording.txt"), func(w io.Writer) error { return List(w, r.Recording) })
}

// List writes a recording as text: header, inputs, outputs, and one operation a line with where it comes from.
func List(w io.Writer, r *recording.Recording) error {
	h := r.Header
	var b strings.Builder
	fmt.Fprintf(&b, "recording %s\n%s-%s %s %s %s, profile %s, recorded on %s, image size %d, batch %d, seed %d\nweights: %s\n",
		r.Digest, h.Family, h.Size, h.Task, h.Mode, h.Precision, h.Profile, h.DeviceType, h.ImgSize, h.Batch, h.Seed, h.Seasoning)
	for _, group := range []struct {
		what   string
		values []recording.Named
	}{{"input", r.Inputs}, {"output", r.Outputs}} {
		for _, named := range group.values {
			fmt.Fprintf(&b, "%s %s: %v\n", group.what, named.Name, &r.Values[named.Value])
		}
	}
	fmt.Fprintf(&b, "%d operations on %d storages\n\n", len(r.Operations), len(r.Storages))
	for i := range r.Operations {
		o := &r.Operations[i]
		fmt.Fprintf(&b, "%5d  %s", i, r.Signature(o))
		if o.Module != "" || o.Source != "" {
			fmt.Fprintf(&b, "    # %s", strings.TrimSpace(o.Module+" "+o.Source))
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// folder is where the files of this cell are kept.
func (v *verification) folder() string {
	return filepath.Join(v.suite.Keep, strings.TrimSuffix(v.result.Name(), ".json"))
}

// keepRecorded keeps the recording, the weights and the inputs.
func (v *verification) keepRecorded() error {
	if v.suite.Keep == "" {
		return nil
	}
	if err := v.recorded.Write(v.folder()); err != nil {
		return err
	}
	for _, name := range v.probes {
		for _, spec := range v.recorded.Inputs {
			data := make([]byte, spec.Bytes())
			if err := probe.Fill(name, spec, v.cell.Seed, data); err != nil {
				return err
			}
			if err := v.keepTensor(filepath.Join("inputs", name), spec, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepRun keeps what an arm gave.
func (v *verification) keepRun(name string, run gate.Run) error {
	if v.suite.Keep == "" {
		return nil
	}
	for _, probe := range v.probes {
		for _, output := range run[probe] {
			if err := v.keepTensor(filepath.Join(name, probe), output.Spec, output.Data); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepTensor writes a tensor so that b3sum of the file is its digest: its header line, then its bytes.
func (v *verification) keepTensor(under string, spec tensor.Spec, data []byte) error {
	dir := filepath.Join(v.folder(), under)
	if err := makeFolder(dir); err != nil {
		return err
	}
	return write(filepath.Join(dir, TensorFile(spec.Name)), append(digest.Header(spec), data...))
}

// TensorFile is how the file is called in which a tensor is kept.
func TensorFile(name string) string {
	return strings.ReplaceAll(name, string(filepath.Separator), "_") + ".tensor"
}

func makeFolder(dir string) error { return os.MkdirAll(dir, 0o755) }

func write(path string, data []byte) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}
