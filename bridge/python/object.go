package samebits

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"samebits/native/device"
)

// An object is what Python holds by a number: a model or a trainer. The number is there before the content, so that a
// caller who is interrupted while it loads can close it.
type object struct {
	what    string     // model, trainer: for errors
	mutex   sync.Mutex // held by the one call that uses the content
	content content    // nil before it is loaded and after it is freed
	device  device.Device

	short atomic.Bool // its last step took but a moment

	state  sync.Mutex // held for moments: guards what follows
	closed bool
	views  int    // arrays that lie in the content's memory
	words  string // what the content had to say when it was closed
}

// content is used by one goroutine at a time.
type content interface{ Close() error }

var objects table[*object]

// use calls f with the content of object number, once it is the only one to use it.
func use[T content](number int64, f func(o *object, c T) error) error {
	o, err := objects.get(number, "model")
	if err != nil {
		return err
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.isClosed() {
		return o.closedError()
	}
	c, ok := o.content.(T)
	if !ok {
		return as(codeInternal, fmt.Errorf("the %s is not loaded, or is something else", o.what))
	}
	if elsewhere, ok := o.device.(device.Elsewhere); ok {
		defer elsewhere.KeepCurrent()() // the thread may be the caller's own, who has a current device there
	}
	return f(o, c)
}

// load gives object number its content, on a device that it shares with others.
func load(number int64, deviceName string, torch []string, make func(d device.Device) (content, error)) error {
	o, err := objects.get(number, "model")
	if err != nil {
		return err
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.isClosed() {
		return o.closedError() // its caller gave up before it began
	}
	if o.content != nil {
		return as(codeInternal, fmt.Errorf("the %s is loaded already", o.what))
	}
	d, err := devicesInUse.open(deviceName, torch)
	if err != nil {
		return as(codeDevice, err)
	}
	c, err := make(d)
	if err != nil {
		return errors.Join(as(codeDevice, err), devicesInUse.close(d))
	}
	o.content, o.device = c, d
	return nil
}

func (o *object) isClosed() bool {
	o.state.Lock()
	defer o.state.Unlock()
	return o.closed
}

func (o *object) closedError() error {
	return as(codeClosed, fmt.Errorf("the %s is closed", o.what))
}

// close stops further calls, waits for the one that runs, and frees the content unless an array lies in it.
func (o *object) close() error {
	o.state.Lock()
	o.closed = true
	o.state.Unlock()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.content == nil || o.viewed() {
		return nil
	}
	if last, ok := o.content.(interface{ lastWords() string }); ok {
		o.words = last.lastWords()
	}
	err := o.content.Close()
	o.content = nil
	return errors.Join(err, devicesInUse.close(o.device))
}

func (o *object) viewed() bool {
	o.state.Lock()
	defer o.state.Unlock()
	return o.views > 0
}

// closeLater is close for finalizers: nobody waits for it, and nobody is left to tell.
func (o *object) closeLater() {
	go func() {
		var err error
		defer guard(&err)
		_ = o.close()
	}()
}

// views are numbers that Python gives back when an array that lies in an object's memory is gone.
var views table[*object]

// view gives a number for arrays that lie in the content's memory. The content is in use.
func (o *object) view() int64 {
	o.state.Lock()
	defer o.state.Unlock()
	o.views++
	return views.add(o)
}

// Release says that the arrays of a view are gone. The last view of a closed object frees its memory.
func Release(number int64) (known bool, err error) {
	defer finish(&err)
	o, err := views.get(number, "view")
	if err != nil {
		return false, nil
	}
	views.remove(number)
	o.state.Lock()
	defer o.state.Unlock()
	if o.views--; o.closed && o.views == 0 {
		o.closeLater()
	}
	return true, nil
}

// Reserve gives a number for a model or trainer that is about to be loaded.
func Reserve(what string) (number int64, err error) {
	defer finish(&err)
	return objects.add(&object{what: what}), nil
}

// Close closes an object: a job that gives {"warning"}. Arrays that lie in its memory stay as they are; the last one frees it.
func Close(ticket, number int64) (result string, err error) {
	defer finish(&err)
	o, err := objects.get(number, "model")
	if err != nil {
		return "{}", nil // closed already
	}
	return run(ticket, func(*job) (string, error) {
		objects.remove(number)
		err := o.close()
		return asJSON(map[string]string{"warning": o.words}), as(codeDevice, err)
	})
}

// Discard closes an object without waiting: for finalizers.
func Discard(number int64) (known bool, err error) {
	defer finish(&err)
	o, err := objects.get(number, "model")
	if err != nil {
		return false, nil
	}
	objects.remove(number)
	o.closeLater()
	return true, nil
}
