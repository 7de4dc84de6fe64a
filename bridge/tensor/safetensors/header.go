package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"samebits/bridge/diag"
)

// header is the parsed JSON header.
type header struct {
	entries  []entry
	metadata map[string]string
}

// parser walks the header token by token: the fixed shape of the format bounds depth and memory, and repeated keys,
// which encoding/json would merge in silence, are seen.
type parser struct {
	d        *json.Decoder
	problems *diag.Problems
}

// parseHeader gives nil if the JSON is broken. Problems of single tensors are added and the others still read.
func parseHeader(text []byte, problems *diag.Problems) *header {
	h, err := func() (*header, error) {
		if len(text) == 0 || text[0] != '{' {
			return nil, fmt.Errorf("does not begin with {")
		}
		if !utf8.Valid(text) {
			return nil, fmt.Errorf("is not UTF-8")
		}
		if !json.Valid(text) {
			return nil, fmt.Errorf("is not JSON")
		}
		p := &parser{json.NewDecoder(bytes.NewReader(text)), problems}
		p.d.UseNumber()
		return p.file()
	}()
	if err != nil {
		problems.Add("BAD_HEADER", "weights", "the header %v", err)
		return nil
	}
	return h
}

func (p *parser) file() (*header, error) {
	h := &header{}
	err := p.object("weights", func(key string) error {
		if key == metadataKey {
			return p.metadata(h)
		}
		e := entry{name: key}
		if err := p.entry(&e); err != nil {
			return err
		}
		h.entries = append(h.entries, e)
		return nil
	})
	return h, err
}

func (p *parser) metadata(h *header) error {
	h.metadata = map[string]string{}
	return p.object(path(metadataKey), func(key string) error {
		t, err := p.d.Token()
		if err != nil {
			return err
		}
		s, ok := t.(string)
		if !ok {
			return fmt.Errorf("has in %s a value that is no text", metadataKey)
		}
		h.metadata[key] = s
		return nil
	})
}

func (p *parser) entry(e *entry) error {
	var seen [3]bool
	err := p.object(path(e.name), func(key string) (err error) {
		switch key {
		case "dtype":
			seen[0] = true
			t, err := p.d.Token()
			if err != nil {
				return err
			}
			s, ok := t.(string)
			if !ok {
				return fmt.Errorf("has a dtype of %.200q that is no text", e.name)
			}
			e.dtype = s
		case "shape":
			seen[1] = true
			e.shape, err = p.integers(e.name, key, MaxRank)
		case "data_offsets":
			seen[2] = true
			var offsets []int64
			offsets, err = p.integers(e.name, key, 2)
			if err == nil && len(offsets) != 2 {
				return fmt.Errorf("has data_offsets of %.200q that are not two numbers", e.name)
			}
			if err == nil {
				e.begin, e.end = uint64(offsets[0]), uint64(offsets[1])
			}
		default:
			return fmt.Errorf("has an unknown key %.64q in %.200q", key, e.name)
		}
		return err
	})
	if err == nil && seen != [3]bool{true, true, true} {
		return fmt.Errorf("lacks dtype, shape or data_offsets of %.200q", e.name)
	}
	return err
}

// object reads an object and calls read with each key, before its value. Repeated keys are a problem, not an error.
func (p *parser) object(where string, read func(key string) error) error {
	if err := p.delimiter('{', where); err != nil {
		return err
	}
	keys := map[string]bool{}
	for p.d.More() {
		t, err := p.d.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok {
			return fmt.Errorf("has a key in %.200q that is no text", where)
		}
		if strings.ContainsRune(key, utf8.RuneError) {
			return fmt.Errorf("has a key in %.200q that is not Unicode", where)
		}
		if keys[key] {
			p.problems.Add("DUPLICATE_NAME", where, "%.200q is there twice", key)
		}
		keys[key] = true
		if err := read(key); err != nil {
			return err
		}
	}
	return p.delimiter('}', where)
}

// integers reads a list of at most limit numbers, none negative.
func (p *parser) integers(name, key string, limit int) ([]int64, error) {
	if err := p.delimiter('[', name); err != nil {
		return nil, err
	}
	var out []int64
	for p.d.More() {
		t, err := p.d.Token()
		if err != nil {
			return nil, err
		}
		text, ok := t.(json.Number)
		if !ok {
			return nil, fmt.Errorf("has in %s of %.200q something that is no number", key, name)
		}
		n, err := strconv.ParseInt(text.String(), 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("has in %s of %.200q the number %.32s", key, name, text)
		}
		if len(out) == limit {
			return nil, fmt.Errorf("has more than %d numbers in %s of %.200q", limit, key, name)
		}
		out = append(out, n)
	}
	return out, p.delimiter(']', name)
}

func (p *parser) delimiter(want json.Delim, where string) error {
	t, err := p.d.Token()
	if err != nil {
		return fmt.Errorf("ends early in %.200q: %w", where, err)
	}
	if t != want {
		return fmt.Errorf("has no %v where one must be in %.200q", want, where)
	}
	return nil
}
