package recording

import (
	"slices"
	"strings"

	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/tensor"
	"samebits/bridge/tensor/safetensors"
)

// CheckWeights reports every way in which a weights file does not fit r: storages that the step reads and the file lacks,
// other dtypes, other sizes. Tensors that r does not name are allowed. r is verified.
func CheckWeights(r *Recording, file *safetensors.File) error {
	var problems diag.Problems
	read := r.readStorages()
	shapes := r.wholeShapes()
	for i := range r.Storages {
		s := &r.Storages[i]
		if !s.Role.Weight() {
			continue
		}
		path := "weights/" + s.Name
		t, ok := file.Get(s.Name)
		switch {
		case !ok && read[i]:
			problems.Add("MISSING_WEIGHT", path, "the file lacks this %s of %d bytes, %s", s.Role, s.Bytes, s.DType)
		case !ok:
		case t.DType != s.DType:
			problems.Add("WRONG_DTYPE", path, "the file has %s, the recording %s", t.DType, s.DType)
		case int64(len(t.Data)) != s.Bytes:
			problems.Add("WRONG_SHAPE", path, "the file has %s%v of %d bytes, the recording %d bytes", t.DType, t.Sizes, len(t.Data), s.Bytes)
		case len(shapes[i]) > 0 && len(t.Sizes) != 1 && !slices.ContainsFunc(shapes[i], func(sizes []int64) bool { return slices.Equal(sizes, t.Sizes) }):
			problems.Add("WRONG_SHAPE", path, "the file has %s%v, the recording %s%v", t.DType, t.Sizes, s.DType, shapes[i][0])
		}
	}
	r.checkHost(file, &problems)
	return problems.Err()
}

// hostPrefix begins the settings that name what the reference read on the host while it recorded: a parameter or buffer
// that decided which operations there are, with the digest of what it held. Other content might give another list.
const hostPrefix = "host."

func (r *Recording) checkHost(file *safetensors.File, problems *diag.Problems) {
	for _, s := range r.Header.ProfileSettings {
		name, is := strings.CutPrefix(s.Key, hostPrefix)
		if !is {
			continue
		}
		if t, ok := file.Get(name); ok && digest.Tensor(tensor.Spec{DType: t.DType, Sizes: t.Sizes}, t.Data) != s.Value {
			problems.Add("HOST_CONSTANT", "weights/"+name, "the reference read it on the host while it recorded, and it held something else: record again with these weights")
		}
	}
}

// readStorages says for each storage whether an operation or an output reads it.
func (r *Recording) readStorages() []bool {
	read := make([]bool, len(r.Storages))
	var values []int
	for i := range r.Operations {
		values = Values(r.Operations[i].Arguments, values[:0])
		for _, v := range values {
			read[r.Values[v].Storage] = true
		}
	}
	for _, n := range r.Outputs {
		read[r.Values[n.Value].Storage] = true
	}
	return read
}

// wholeShapes gives, for each weight storage, the shapes under which contiguous values cover all of it. One of them is the
// shape of the file's tensor, unless the tensor was not contiguous: then the file has one dimension.
func (r *Recording) wholeShapes() [][][]int64 {
	shapes := make([][][]int64, len(r.Storages))
	for i := range r.Values {
		v := &r.Values[i]
		s := &r.Storages[v.Storage]
		if s.Role.Weight() && v.DType == s.DType && v.Offset == 0 && v.Contiguous() && v.Numel()*v.DType.Size() == s.Bytes {
			shapes[v.Storage] = append(shapes[v.Storage], v.Sizes)
		}
	}
	return shapes
}
