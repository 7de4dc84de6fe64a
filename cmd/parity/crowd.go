package main

import (
	"fmt"
	"strings"
	"sync"

	"samebits/parity/result"
)

// crowd counts the cells in work.
type crowd struct {
	mu     sync.Mutex
	inside map[*int]bool // by the most that were beside each
}

// enter begins the work on a cell. What it gives is called in the end, and says how many others were in work at most at once.
func (c *crowd) enter() (leave func() int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inside == nil {
		c.inside = map[*int]bool{}
	}
	beside := new(int)
	c.inside[beside] = true
	for most := range c.inside {
		*most = max(*most, len(c.inside)-1)
	}
	return func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.inside, beside)
		return *beside
	}
}

// advise says what may help where memory ran out beside other cells.
func advise(r *result.Result, others int) {
	if others == 0 || r.Verdict != result.Broken {
		return
	}
	cells := "another cell"
	if others > 1 {
		cells = fmt.Sprintf("up to %d other cells", others)
	}
	for i, p := range r.Problems {
		if p.Reason == "OUT_OF_MEMORY" {
			said := fmt.Sprintf("beside %s; alone: %s; many one by one: --jobs 1", cells, r.Reproduce)
			r.Problems[i].Detail = strings.TrimPrefix(p.Detail+"; "+said, "; ")
		}
	}
}
