package train

import (
	"strings"

	"samebits/native/engine"
)

// Move gives the state and each shape's own memory other addresses. Graphs are dropped when their next step finds that out.
func (t *Trainer) Move() error {
	for _, s := range t.shapes {
		if err := s.Wait(); err != nil {
			return err
		}
	}
	if err := t.state.Move(t.device); err != nil {
		return err
	}
	for _, s := range t.shapes {
		if err := s.model.Move(); err != nil {
			return err
		}
	}
	return nil
}

// Rescale doubles or halves every floating parameter where it lies, for tests. Averages and momentum stay.
func (t *Trainer) Rescale(up bool) error {
	for _, s := range t.shapes {
		if err := s.Wait(); err != nil {
			return err
		}
	}
	for _, spec := range t.specs {
		if !strings.HasPrefix(spec.Name, "param.") || !spec.DType.Float() {
			continue
		}
		data := make([]byte, spec.Bytes())
		if err := t.state.Read(spec.Name, data); err != nil {
			return err
		}
		engine.Scale(spec.DType, data, up)
		if err := t.state.Write(spec.Name, data); err != nil {
			return err
		}
	}
	return nil
}
