package host

import (
	"errors"
	"fmt"
	"os"
)

// descriptors are the files over which host and plugin talk besides the socket. The plugin inherits its ends.
type descriptors struct {
	step *os.File // the host's end of the step sockets
	life *os.File // the plugin ends when this one is closed

	theirs []inherited
}

// newDescriptors makes all of them. The credentials lie in their pipe already.
func newDescriptors(memory *os.File, credentials []byte) (_ *descriptors, err error) {
	d := &descriptors{theirs: []inherited{{envMemory, memory}}}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	var theirs *os.File
	if d.step, theirs, err = newStepPair(); err != nil {
		return nil, err
	}
	d.theirs = append(d.theirs, inherited{envStep, theirs})
	if theirs, d.life, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("life pipe: %w", err)
	}
	d.theirs = append(d.theirs, inherited{envLife, theirs})
	theirs, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("credentials pipe: %w", err)
	}
	d.theirs = append(d.theirs, inherited{envTLS, theirs})
	_, err = write.Write(credentials) // 2 KB: a pipe holds them
	if err = errors.Join(err, write.Close()); err != nil {
		return nil, fmt.Errorf("credentials pipe: %w", err)
	}
	return d, nil
}

// handedOver closes the plugin's ends in this process: as long as we hold them, its death goes unnoticed.
func (d *descriptors) handedOver() error {
	var err error
	for _, t := range d.theirs {
		if t.variable != envMemory {
			err = errors.Join(err, t.file.Close())
		}
	}
	d.theirs = nil
	return err
}

func (d *descriptors) close() error {
	err := d.handedOver()
	for _, file := range []*os.File{d.step, d.life} {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}
