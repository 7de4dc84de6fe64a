package reduce

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"samebits/bridge/diag"
	"samebits/bridge/recording"
)

// Part is a part of a recording on which both sides still differ, with what they gave.
type Part struct {
	Step       int   // of a training run; 0: of none
	Operations []int // of the whole recording
	Of         int
	Tests      int
	Recording  *recording.Recording
	Detail     string // how it differs
	job        *job
	both       both
}

// search is one Reduce.
type search struct {
	*Finder
	whole    *Case
	analysis *analysis
	contents map[need][]byte
	tests    int
	best     *Part
}

// ErrNothingDiffers says that there is nothing to look for.
var ErrNothingDiffers = errors.New("nothing differs")

// Reduce finds a smallest part of a case on which both sides differ: none of its operations can be left out. It takes parts
// of the list away as long as a difference stays (delta debugging); what the rest reads of them becomes an input with the
// reference's bits.
func (f *Finder) Reduce(ctx context.Context, c *Case) (*Part, error) {
	f.open()
	defer f.close()
	s := newSearch(f, c)
	all := make([]int, len(c.Recording.Operations))
	for i := range all {
		all[i] = i
	}
	is, err := s.differs(ctx, all, true)
	if err != nil {
		return nil, err
	}
	if !is {
		return nil, ErrNothingDiffers
	}
	if err := s.quiet(ctx); err != nil {
		return nil, err
	}
	if _, err := s.narrow(ctx, all); err != nil {
		return nil, err
	}
	s.best.Tests = s.tests
	return s.best, nil
}

func newSearch(f *Finder, c *Case) *search {
	return &search{Finder: f, whole: c, analysis: analyse(c.Recording), contents: map[need][]byte{}}
}

// narrow is ddmin: halves first, then smaller pieces and what is left without them.
func (s *search) narrow(ctx context.Context, operations []int) ([]int, error) {
	for pieces := 2; len(operations) > 1; {
		chunks := split(operations, pieces)
		next, err := s.firstThatDiffers(ctx, chunks)
		if err != nil {
			return nil, err
		}
		if next != nil {
			operations, pieces = next, 2
			continue
		}
		if pieces > 2 {
			var without [][]int
			for _, c := range chunks {
				without = append(without, slices.DeleteFunc(slices.Clone(operations), func(i int) bool { return slices.Contains(c, i) }))
			}
			if next, err = s.firstThatDiffers(ctx, without); err != nil {
				return nil, err
			}
			if next != nil {
				operations, pieces = next, max(pieces-1, 2)
				continue
			}
		}
		if pieces >= len(operations) {
			return operations, nil
		}
		pieces = min(2*pieces, len(operations))
	}
	return operations, nil
}

func split(list []int, pieces int) [][]int {
	var chunks [][]int
	for i := range pieces {
		if c := list[i*len(list)/pieces : (i+1)*len(list)/pieces]; len(c) > 0 {
			chunks = append(chunks, slices.Clone(c))
		}
	}
	return chunks
}

func (s *search) firstThatDiffers(ctx context.Context, candidates [][]int) ([]int, error) {
	for _, c := range candidates {
		is, err := s.differs(ctx, c, false)
		if err != nil {
			return nil, err
		}
		if is {
			return c, nil
		}
	}
	return nil, nil
}

// differs reports whether a part differs, and remembers it if so. must: a part that cannot run is an error.
func (s *search) differs(ctx context.Context, operations []int, must bool) (bool, error) {
	part, err := s.part(ctx, operations)
	if err != nil || part == nil {
		if err == nil && must {
			err = diag.New("NOTHING_TO_COMPARE", "operations", "the recording gives nothing that can be compared")
		}
		return false, err
	}
	s.tests++
	part.both, err = s.test(ctx, part.job)
	if err != nil {
		if !must && s.tolerable(ctx, err) {
			return false, nil
		}
		return false, err
	}
	s.say("test %d: %d of %d operations %s", s.tests, len(operations), part.Of, map[bool]string{true: "differ", false: "agree"}[part.both.differs])
	if part.both.differs {
		part.Detail = part.both.detail
		s.best = part
	}
	return part.both.differs, nil
}

// part makes a part that can run; nil if there is no such part.
func (s *search) part(ctx context.Context, operations []int) (*Part, error) {
	c := s.analysis.cut(operations)
	if c == nil {
		return nil, nil
	}
	if err := s.fetch(ctx, c.needs); err != nil {
		return nil, err
	}
	j, err := newJob(c.recording, func(storage int) []byte { return s.content(c.needs[storage]) })
	if err != nil {
		return nil, err
	}
	return &Part{Step: s.whole.Step, Operations: operations, Of: len(s.whole.Recording.Operations), Recording: c.recording, job: j}, nil
}

func (s *search) content(n need) []byte {
	if n.after < 0 {
		return s.whole.Given[n.storage]
	}
	return s.contents[n]
}

// fetch runs the reference as far as it must to have the contents of storages.
func (s *search) fetch(ctx context.Context, needs map[int]need) error {
	runs := map[int][]need{} // by the operation to run up to
	latest := 0
	for _, n := range needs {
		if _, has := s.contents[n]; has || n.after < 0 {
			continue
		}
		latest = max(latest, n.after)
	}
	for _, n := range needs {
		if _, has := s.contents[n]; has || n.after < 0 {
			continue
		}
		end := n.after
		if !slices.ContainsFunc(s.analysis.writers[n.storage], func(w int) bool { return w > n.after && w <= latest }) {
			end = latest // nobody writes it before
		}
		runs[end] = append(runs[end], n)
	}
	for end, wanted := range runs {
		var storages []int
		for _, n := range wanted {
			storages = append(storages, n.storage)
		}
		j, err := newJob(s.analysis.prefix(end, storages), func(storage int) []byte { return s.whole.Given[storage] })
		if err != nil {
			return err
		}
		outputs, err := s.reference.run(ctx, j)
		if err != nil {
			return fmt.Errorf("the reference up to operation %d: %w", end, err)
		}
		for i, n := range wanted {
			s.contents[n] = outputs[i].Data
		}
	}
	return nil
}

// quiet makes sure that the reference reproduces itself on what was found: else nobody can be blamed.
func (s *search) quiet(ctx context.Context) error {
	again, err := s.reference.run(ctx, s.best.job)
	if err != nil {
		return err
	}
	if !again.Same(s.best.both.reference) {
		return diag.New("EAGER_NOISE", "", "PyTorch gives other bits the second time; native is not blamed")
	}
	return nil
}
