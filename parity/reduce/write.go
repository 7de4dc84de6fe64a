package reduce

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"

	"samebits/bridge/atomicfile"
	"samebits/bridge/digest"
	"samebits/bridge/recording"
	"samebits/bridge/tensor/safetensors"
	"samebits/parity/gate"
	"samebits/parity/suite"
)

// Tensor names what one side or both gave.
type Tensor struct {
	Name      string `json:"name"`
	Value     string `json:"value"` // dtype and sizes
	Reference string `json:"reference,omitempty"`
	Native    string `json:"native,omitempty"`
}

// Report is the file report.json of a reduced part.
type Report struct {
	Step       int      `json:"step,omitempty"` // of a training run
	Operations []int    `json:"operations"`     // their numbers in the whole recording
	Of         int      `json:"of"`
	Tests      int      `json:"tests,omitempty"`
	Signatures []string `json:"signatures"`
	Modules    []string `json:"modules"`
	Detail     string   `json:"detail"`
	Inputs     []Tensor `json:"inputs"` // with their digests as the reference's
	Outputs    []Tensor `json:"outputs"`
}

// Report sums a part up.
func (p *Part) Report() (Report, error) {
	r := Report{Step: p.Step, Operations: p.Operations, Of: p.Of, Tests: p.Tests, Detail: p.Detail, Inputs: []Tensor{}, Outputs: []Tensor{}}
	for i := range p.Recording.Operations {
		o := &p.Recording.Operations[i]
		r.Signatures = append(r.Signatures, p.Recording.Signature(o))
		r.Modules = append(r.Modules, o.Module+" "+o.Source)
	}
	given, err := p.job.tensors()
	if err != nil {
		return r, err
	}
	for _, t := range given {
		v := recording.Value{DType: t.DType, Sizes: t.Sizes}
		r.Inputs = append(r.Inputs, Tensor{Name: t.Name, Value: v.DType.String() + sizes(t.Sizes), Reference: digest.Tensor(t.Spec, t.Data)})
	}
	for i, o := range p.both.reference {
		t := Tensor{Name: o.Name, Value: o.DType.String() + sizes(o.Sizes), Reference: o.Digest}
		if i < len(p.both.native) {
			t.Native = p.both.native[i].Digest
		}
		r.Outputs = append(r.Outputs, t)
	}
	return r, nil
}

func sizes(list []int64) string {
	data, _ := json.Marshal(list) // whole numbers always encode
	return string(data)
}

// Write writes a part into a folder: recording.pb and recording.txt, inputs.safetensors, what both sides gave, run.py and
// report.json.
func (p *Part) Write(dir string) error {
	report, err := p.Report()
	if err != nil {
		return err
	}
	if err := p.files(dir); err != nil {
		return err
	}
	if err := writeOutputs(dir, p.both); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "report.json"), report)
}

// files writes what runs alone.
func (p *Part) files(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	given, err := p.job.tensors()
	if err != nil {
		return err
	}
	if err := safetensors.WriteFile(filepath.Join(dir, "inputs.safetensors"), given, nil); err != nil {
		return err
	}
	decoded, err := recording.Decode(p.job.file)
	if err != nil {
		return err
	}
	var list bytes.Buffer
	if err := suite.List(&list, decoded); err != nil {
		return err
	}
	script, err := Script(p.Recording, p.both.reference, p.both.native)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"recording.pb": p.job.file, "recording.txt": list.Bytes(), "run.py": script} {
		if err := atomicfile.WriteBytes(filepath.Join(dir, name), data); err != nil {
			return err
		}
	}
	return nil
}

func writeOutputs(dir string, b both) error {
	for name, outputs := range map[string]gate.Outputs{"reference.safetensors": b.reference, "native.safetensors": b.native} {
		var tensors []safetensors.Tensor
		for _, o := range outputs {
			tensors = append(tensors, safetensors.Tensor{Spec: o.Spec, Data: o.Data})
		}
		if err := safetensors.WriteFile(filepath.Join(dir, name), tensors, nil); err != nil {
			return err
		}
	}
	return nil
}

func writeJSON(path string, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	return atomicfile.WriteBytes(path, b.Bytes())
}

// Write writes a culprit into a folder: as a part's, but with both results as they were in the whole step.
func (c *Culprit) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if c.part != nil {
		if err := c.part.files(dir); err != nil {
			return err
		}
	}
	if err := writeOutputs(dir, c.results); err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "report.json"), c)
}
