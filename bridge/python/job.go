package samebits

import (
	"errors"
	"sync"
	"time"
)

// slice is how long a call waits before it lets Python look at its signals.
var slice = 20 * time.Millisecond

// A job is a call that goes on while Python waits for it in slices.
type job struct {
	done   chan struct{} // closed when result and err are there
	result string
	err    error

	mutex     sync.Mutex // held while the caller's memory is in use
	abandoned bool
}

var (
	jobs         table[*job]
	errAbandoned = errors.New("the caller gave up")
)

// run does work as a job and waits a first slice for it. It gives the work's result as JSON, or nothing: then Await has it.
//
// The job's number is a ticket that Python drew, because Python must know it when an interrupt comes between the call and
// its result.
func run(ticket int64, work func(j *job) (string, error)) (string, error) {
	j := &job{done: make(chan struct{})}
	go func() {
		defer close(j.done)
		defer guard(&j.err)
		j.result, j.err = work(j)
	}()
	if j.wait() {
		return j.result, j.err
	}
	jobs.put(ticket, j)
	return "", nil
}

// runShort is run for a call of an object that may be short. If the one before was, it runs on the caller's own thread: to
// hand it to another takes longer than a small step.
func runShort(ticket, number int64, work func(j *job) (string, error)) (string, error) {
	o, err := objects.get(number, "model")
	if err != nil {
		return "", err
	}
	timed := func(j *job) (string, error) {
		begin := time.Now()
		result, err := work(j)
		o.short.Store(err == nil && time.Since(begin) < slice/2)
		return result, err
	}
	if o.short.Load() {
		return timed(&job{})
	}
	return run(ticket, timed)
}

func (j *job) wait() bool {
	timer := time.NewTimer(slice)
	defer timer.Stop()
	select {
	case <-j.done:
		return true
	case <-timer.C:
		return false
	}
}

// touch uses the caller's memory, unless the caller gave up.
func (j *job) touch(use func() error) error {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	if j.abandoned {
		return errAbandoned
	}
	return use()
}

// Await waits a slice for a job. It gives the job's result as JSON, or nothing while there is none.
func Await(ticket int64) (result string, err error) {
	defer finish(&err)
	j, err := jobs.get(ticket, "job")
	if err != nil {
		return "", err
	}
	if !j.wait() {
		return "", nil
	}
	jobs.remove(ticket)
	return j.result, j.err
}

// Abandon gives a job up, known or not: nobody gets its result, and when Abandon returns it uses the caller's memory no
// more.
func Abandon(ticket int64) (known bool, err error) {
	defer finish(&err)
	j, err := jobs.get(ticket, "job")
	if err != nil {
		return false, nil // it ended and was taken
	}
	jobs.remove(ticket)
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.abandoned = true
	return true, nil
}
