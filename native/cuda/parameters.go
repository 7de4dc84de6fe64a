package cuda

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

// A cubin describes each of its kernels in a section .nv.info.<entry>: a list of attributes. Its layout is NVIDIA's own;
// TestParameters holds it against what NVRTC writes.
const (
	infoSection = ".nv.info."

	formatSized = 4 // an attribute whose 16-bit value is the size of the data after it; others have the value only

	attributeParameter   = 0x17 // one parameter
	attributeBytes       = 0x19 // of all parameters; absent if there are none
	attributeParameterV2 = 0x45 // one parameter of a kernel that has more than 4 KiB of them
)

// parameter is where an argument lies in the memory that a launch fills.
type parameter struct{ offset, bytes int }

// parameters reads what each kernel of a cubin takes. The driver tells it too, but only by an error after the last
// parameter, which tools that watch for errors report.
func parameters(cubin []byte) (map[string][]parameter, error) {
	f, err := elf.NewFile(bytes.NewReader(cubin))
	if err != nil {
		return nil, fmt.Errorf("read the cubin: %w", err)
	}
	defer f.Close()
	kernels := map[string][]parameter{}
	for _, s := range f.Sections {
		entry, ok := strings.CutPrefix(s.Name, infoSection)
		if !ok {
			continue
		}
		info, err := s.Data()
		if err != nil {
			return nil, fmt.Errorf("read section %s of the cubin: %w", s.Name, err)
		}
		if kernels[entry], err = kernelParameters(info); err != nil {
			return nil, fmt.Errorf("section %s of the cubin: %w", s.Name, err)
		}
	}
	return kernels, nil
}

// kernelParameters reads the attributes of one kernel. It refuses a list with a gap: a wrong answer would make launches
// pass that read past their arguments.
func kernelParameters(info []byte) ([]parameter, error) {
	found := map[int]parameter{} // by position; the compiler writes the last one first
	total := 0
	for len(info) > 0 {
		if len(info) < 4 {
			return nil, fmt.Errorf("%d bytes after the last attribute", len(info))
		}
		format, attribute, value := info[0], info[1], int(binary.LittleEndian.Uint16(info[2:]))
		info = info[4:]
		var data []byte
		if format == formatSized {
			if value > len(info) {
				return nil, fmt.Errorf("attribute %#x has %d bytes, %d are left", attribute, value, len(info))
			}
			data, info = info[:value], info[value:]
		}
		switch attribute {
		case attributeBytes:
			total = value
		case attributeParameter, attributeParameterV2:
			if len(data) != 12 {
				return nil, fmt.Errorf("parameter attribute %#x has %d bytes, not 12", attribute, len(data))
			}
			position := int(binary.LittleEndian.Uint16(data[4:]))
			p := parameter{offset: int(binary.LittleEndian.Uint16(data[6:]))}
			if attribute == attributeParameter {
				p.bytes = int(binary.LittleEndian.Uint32(data[8:]) >> 18)
			} else {
				p.bytes = int(binary.LittleEndian.Uint16(data[8:]))
			}
			if _, twice := found[position]; twice {
				return nil, fmt.Errorf("parameter %d is there twice", position)
			}
			found[position] = p
		}
	}
	return inOrder(found, total)
}

// inOrder makes a list of what lies one after the other and ends at total.
func inOrder(found map[int]parameter, total int) ([]parameter, error) {
	list := make([]parameter, 0, len(found))
	end := 0
	for i := range len(found) {
		p, ok := found[i]
		if !ok {
			return nil, fmt.Errorf("parameter %d of %d is not there", i, len(found))
		}
		if p.bytes == 0 || p.offset < end {
			return nil, fmt.Errorf("parameter %d has %d bytes at %d, after one that ends at %d", i, p.bytes, p.offset, end)
		}
		end = p.offset + p.bytes
		list = append(list, p)
	}
	if end != total {
		return nil, fmt.Errorf("parameters end at byte %d of %d", end, total)
	}
	return list, nil
}
