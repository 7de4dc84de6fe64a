package engine

import (
	"fmt"

	"samebits/bridge/recording"
	"samebits/bridge/tensor"
)

// Result names one result tensor of an operation: a number over the flat list of its results.
type Result struct{ Operation, Result int }

// Trace runs one step eagerly, operation by operation, and shows every result at once after its operation, before a
// later one can overwrite it. The model must keep all (plan.Options.KeepAll). data is valid during the call only.
func (m *Model) Trace(see func(at Result, spec tensor.Spec, data []byte) error) error {
	if !m.keepsAll() {
		return fmt.Errorf("trace: the model was planned without room for every result")
	}
	var buffer []byte
	written := make([]bool, len(m.recording.Storages))
	for s := range m.recording.Storages {
		switch m.recording.Storages[s].Role {
		case recording.Input, recording.Parameter, recording.Buffer, recording.Constant:
			written[s] = true
		}
	}
	for i := range m.recording.Operations {
		r := m.plan.Ranges[i]
		if err := m.program.Run(r.From, r.To); err != nil {
			return fmt.Errorf("operations[%d]: %w", i, err)
		}
		if err := m.program.Wait(); err != nil {
			return fmt.Errorf("operations[%d]: %w", i, err)
		}
		for n, value := range recording.Values(m.recording.Operations[i].Results, nil) {
			v := &m.recording.Values[value]
			written[v.Storage] = written[v.Storage] || r.To > r.From
			if !written[v.Storage] || m.plan.Storages[v.Storage].Area == 0 {
				continue // memory that nothing has written yet: aten::empty
			}
			spec := tensor.Spec{DType: v.DType, Sizes: v.Sizes}
			if need := spec.Bytes(); int64(cap(buffer)) < need {
				buffer = make([]byte, need)
			}
			data := buffer[:spec.Bytes()]
			if err := m.readValue(value, data); err != nil {
				return fmt.Errorf("operations[%d] result %d: %w", i, n, err)
			}
			if err := see(Result{i, n}, spec, data); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *Model) keepsAll() bool { return m.plan.Kept }
