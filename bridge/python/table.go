package samebits

import (
	"fmt"
	"sync"
)

// A table gives numbers to what Python holds on to. Numbers are never used again, so an old one is an error, not somebody
// else's object.
type table[T any] struct {
	mutex sync.Mutex
	last  int64
	all   map[int64]T
}

func (t *table[T]) add(v T) int64 {
	t.mutex.Lock()
	t.last++
	number := t.last
	t.mutex.Unlock()
	t.put(number, v)
	return number
}

// put adds v with a number that the caller chose.
func (t *table[T]) put(number int64, v T) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.all == nil {
		t.all = map[int64]T{}
	}
	t.all[number] = v
}

// get finds v. what names it in the error.
func (t *table[T]) get(number int64, what string) (v T, err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	v, ok := t.all[number]
	if !ok {
		return v, as(codeClosed, fmt.Errorf("the %s is closed", what))
	}
	return v, nil
}

func (t *table[T]) remove(number int64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.all, number)
}

func (t *table[T]) size() int {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return len(t.all)
}
