package matrix

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"samebits/parity/launch"
)

// Selection says which lines of the reference plugin's table are wanted. A line must match one of each list that is not
// empty.
type Selection struct {
	// Families are names, or patterns of names as path.Match has them. One with a slash is of TASK/FAMILY.
	Families []string
	Tasks    []string
	// Groups are those that patterns are looked for in, and that are taken where there are no Families. A name is of any.
	Groups []string
}

// IsPattern reports whether text stands for several families.
func IsPattern(text string) bool { return strings.ContainsAny(text, `*?[\/`) }

// Choose gives the lines of a selection: those of each family in the order of the table. A name that the table lacks is
// taken as it is, for the plugin says best what is wrong with it. A name without a task is the family's first one.
func (s Selection) Choose(table []launch.Entry) ([]launch.Entry, error) {
	if len(s.Families) == 0 {
		every := func(launch.Entry) bool { return true }
		all := s.matching(table, every)
		if len(all) == 0 {
			return nil, s.nothing(table, "", every)
		}
		return all, nil
	}
	var all []launch.Entry
	for _, family := range s.Families {
		found := s.named(table, family)
		if IsPattern(family) {
			if _, err := path.Match(family, ""); err != nil {
				return nil, fmt.Errorf("%q is no pattern: %w", family, err)
			}
			match := func(e launch.Entry) bool { return matches(family, e) }
			found = s.matching(table, match)
			if len(found) == 0 {
				return nil, s.nothing(table, fmt.Sprintf(" matches %q", family), match)
			}
		}
		for _, e := range found {
			if !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
	}
	return all, nil
}

func matches(pattern string, e launch.Entry) bool {
	name := e.Family
	if strings.Contains(pattern, "/") {
		name = e.Task + "/" + e.Family
	}
	ok, _ := path.Match(pattern, name)
	return ok
}

func (s Selection) matching(table []launch.Entry, match func(launch.Entry) bool) []launch.Entry {
	var found []launch.Entry
	for _, e := range table {
		task := len(s.Tasks) == 0 || slices.Contains(s.Tasks, e.Task)
		group := len(s.Groups) == 0 || slices.Contains(s.Groups, e.Group)
		if task && group && match(e) {
			found = append(found, e)
		}
	}
	return found
}

// nothing says that no line is wanted, and which groups have some that would be.
func (s Selection) nothing(table []launch.Entry, what string, match func(launch.Entry) bool) error {
	text := "no cell" + what
	if len(s.Tasks) > 0 {
		text += " of task " + strings.Join(s.Tasks, ", ")
	}
	if len(s.Groups) > 0 {
		text += " in group " + strings.Join(s.Groups, ", ")
	}
	var others []string
	for _, e := range (Selection{Tasks: s.Tasks}).matching(table, match) {
		if !slices.Contains(others, e.Group) {
			others = append(others, e.Group)
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("%s; there are some with --group %s", text, strings.Join(others, ","))
	}
	return fmt.Errorf("%s; see parity list", text)
}

// named gives the lines of one family.
func (s Selection) named(table []launch.Entry, family string) []launch.Entry {
	tasks := s.Tasks
	if len(tasks) == 0 {
		tasks = []string{""}
	}
	var found []launch.Entry
	for _, task := range tasks {
		at := slices.IndexFunc(table, func(e launch.Entry) bool { return e.Family == family && (task == "" || e.Task == task) })
		if at < 0 {
			found = append(found, launch.Entry{Family: family, Task: task})
			continue
		}
		found = append(found, table[at])
	}
	return found
}
