package result

import (
	"cmp"
	"slices"
	"strings"

	"samebits/bridge/arm"
)

// Launches is the launch list of a step of the native engine, which its eager arm walks and its graph holds.
type Launches struct {
	Kinds []string `json:"kinds"`           // the most frequent first; each has a letter of Letters
	Order string   `json:"order"`           // a letter a launch
	Lanes string   `json:"lanes,omitempty"` // a digit a launch: what is on other lanes may run beside it
}

// Letters stand for kinds. Kinds beyond them share the last one.
const Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"

// The longest list, and the longest name of a kind, that a result has: a plugin may say anything.
const (
	other        = "other"
	mostLaunches = 1 << 17
	longestKind  = 100
)

// NewLaunches writes a list down; nil: there is none.
func NewLaunches(list arm.LaunchList) *Launches {
	if n := len(list.Kind); n == 0 || n > mostLaunches || list.Check() != nil {
		return nil
	}
	counts := make([]int, len(list.Kinds))
	for _, k := range list.Kind {
		counts[k]++
	}
	order := make([]int, 0, len(counts)) // kinds that occur
	for k, n := range counts {
		if n > 0 {
			order = append(order, k)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(list.Kinds[a], list.Kinds[b]))
	})
	l := &Launches{}
	letters := make([]byte, len(counts))
	for i, k := range order {
		letters[k] = Letters[min(i, len(Letters)-1)]
		switch {
		case i >= len(Letters):
			l.Kinds[len(Letters)-1] = other
		case list.Kinds[k] == "" || len(list.Kinds[k]) > longestKind:
			l.Kinds = append(l.Kinds, other)
		default:
			l.Kinds = append(l.Kinds, list.Kinds[k])
		}
	}
	var text, lanes strings.Builder
	for i, k := range list.Kind {
		text.WriteByte(letters[k])
		if list.Lane != nil {
			lanes.WriteByte('0' + min(list.Lane[i], 9))
		}
	}
	l.Order, l.Lanes = text.String(), lanes.String()
	return l
}
