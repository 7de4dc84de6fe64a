package samebits

import (
	"os"

	"samebits/bridge/diag"
)

// Settings takes variables over from Python and says whether any was changed: {"NAME": "value"}, null for one that is not set. Go
// has its own copy of the environment, made when this extension was loaded, and would not see what os.environ was given afterwards.
func Settings(variables string) (changed bool, err error) {
	defer finish(&err)
	var given map[string]*string
	if err := fromJSON(variables, &given); err != nil {
		return false, err
	}
	for name, value := range given {
		did, err := set(name, value)
		if err != nil {
			return false, as(codeInput, diag.New("WRONG_SETTING", name, "%v", err))
		}
		changed = changed || did
	}
	return changed, nil
}

func set(name string, value *string) (changed bool, err error) {
	before, is := os.LookupEnv(name)
	switch {
	case value == nil && is:
		return true, os.Unsetenv(name)
	case value != nil && (!is || before != *value):
		return true, os.Setenv(name, *value)
	}
	return false, nil
}
