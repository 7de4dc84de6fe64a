package verifypage

import (
	"maps"
	"slices"

	"samebits/parity/result"
)

// environments are what the plugins say of the machines of all results.
type environments struct {
	Same   []fact // in every result
	Varied []varied
}

// varied is a setting that is not the same everywhere.
type varied struct {
	Name   string
	Values []counted
}

type counted struct {
	Value string
	Cells int
}

func newEnvironments(all []result.Result) environments {
	keys := map[string]map[string]int{}
	for _, r := range all {
		for key, value := range r.Environment {
			if keys[key] == nil {
				keys[key] = map[string]int{}
			}
			keys[key][value]++
		}
	}
	var e environments
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		values := slices.Sorted(maps.Keys(keys[key]))
		if len(values) == 1 && keys[key][values[0]] == len(all) {
			e.Same = append(e.Same, fact{key, values[0]})
			continue
		}
		v := varied{Name: key}
		for _, value := range values {
			v.Values = append(v.Values, counted{value, keys[key][value]})
		}
		e.Varied = append(e.Varied, v)
	}
	return e
}

// own lists what one result's environment has that is not in every one.
func (e environments) own(environment map[string]string) []fact {
	var all []fact
	for _, v := range e.Varied {
		if value, has := environment[v.Name]; has {
			all = append(all, fact{v.Name, value})
		}
	}
	return all
}
