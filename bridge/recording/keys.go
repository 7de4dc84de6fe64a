package recording

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"samebits/bridge/diag"
	"samebits/bridge/tensor"
)

// keyPrefix begins the settings that hold what an input held while the reference recorded, where the host read it: rows
// and columns of packed images, say. The recording is of a step with these numbers, and wrong with others.
const keyPrefix = "key."

// OfStep reports whether a profile setting says something of the recorded step alone, and not of the profile: what the host
// read, and what a trainer goes by.
func (s Setting) OfStep() bool {
	for _, prefix := range []string{keyPrefix, hostPrefix, "train."} {
		if strings.HasPrefix(s.Key, prefix) {
			return true
		}
	}
	return false
}

// Key gives the numbers that an input must hold, as text: in row-major order with spaces between. There are none of most
// inputs.
func (r *Recording) Key(input string) (string, bool) {
	for _, s := range r.Header.ProfileSettings {
		if name, is := strings.CutPrefix(s.Key, keyPrefix); is && name == input {
			return s.Value, true
		}
	}
	return "", false
}

// CheckKey reports an input whose content is another one than what the reference recorded with.
func (r *Recording) CheckKey(input tensor.Spec, data []byte) error {
	want, is := r.Key(input.Name)
	if !is || r.HoldsFor(input, data) {
		return nil
	}
	got, err := keyText(input, data)
	if err != nil {
		return err
	}
	return diag.New(OtherKey, "inputs/"+input.Name, "it holds %s, the recording was made with %s and holds for nothing else: record a step with these numbers, too", got, want)
}

// HoldsFor is CheckKey for who asks in every step: it does not say what is wrong, and takes no memory.
func (r *Recording) HoldsFor(input tensor.Spec, data []byte) bool {
	want, is := r.Key(input.Name)
	if !is {
		return true
	}
	if input.DType != tensor.Int64 || int64(len(data)) != input.Bytes() {
		return false
	}
	var digits [20]byte
	for first := true; len(data) > 0; first, data = false, data[8:] {
		if !first {
			if want == "" || want[0] != ' ' {
				return false
			}
			want = want[1:]
		}
		word := strconv.AppendInt(digits[:0], int64(binary.LittleEndian.Uint64(data)), 10)
		if !strings.HasPrefix(want, string(word)) {
			return false
		}
		want = want[len(word):]
	}
	return want == ""
}

// OtherKey is the reason of an input that a recording does not hold for.
const OtherKey = "OTHER_KEY"

func keyText(input tensor.Spec, data []byte) (string, error) {
	if input.DType != tensor.Int64 || int64(len(data)) != input.Bytes() {
		return "", fmt.Errorf("key %s: %d bytes of %v%v", input.Name, len(data), input.DType, input.Sizes)
	}
	words := make([]string, 0, len(data)/8)
	for ; len(data) > 0; data = data[8:] {
		words = append(words, strconv.FormatInt(int64(binary.LittleEndian.Uint64(data)), 10))
	}
	return strings.Join(words, " "), nil
}

// PutKey writes what an input must hold over dst.
func (r *Recording) PutKey(input tensor.Spec, dst []byte) error {
	text, _ := r.Key(input.Name)
	words := strings.Fields(text)
	if input.DType != tensor.Int64 || len(dst) != 8*len(words) {
		return diag.New("BAD_KEY", "inputs/"+input.Name, "the recording has %d numbers for %v%v", len(words), input.DType, input.Sizes)
	}
	for i, word := range words {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return diag.New("BAD_KEY", "inputs/"+input.Name, "%.64q is no number", word)
		}
		binary.LittleEndian.PutUint64(dst[8*i:], uint64(n))
	}
	return nil
}
