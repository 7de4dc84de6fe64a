package host

import (
	"os"
	"slices"
	"strconv"
)

// AllowedEnv lists the variables of the host that reach a plugin. All others stay out, LD_LIBRARY_PATH, PYTHONPATH and
// the many switches of CUDA and torch among them: they change bits. Give a plugin what it needs by Config.Env.
var AllowedEnv = []string{"PATH", "HOME", "LANG", "TMPDIR", "CUDA_VISIBLE_DEVICES"}

// Descriptors that a plugin inherits, by the variable that tells their number.
const (
	envMemory = "SAMEBITS_FD_MEMORY"
	envStep   = "SAMEBITS_FD_STEP"
	envTLS    = "SAMEBITS_FD_TLS"
	envLife   = "SAMEBITS_FD_LIFE"
)

// firstInherited is the number of the first of exec.Cmd's ExtraFiles in the child.
const firstInherited = 3

// inherited pairs a variable with the file whose number in the child it tells.
type inherited struct {
	variable string
	file     *os.File
}

// environment gives the variables of a plugin: the allowed ones, those of the caller, then ours, which win.
func environment(extra []string, files []inherited, handshake []string) []string {
	var env []string
	for _, key := range AllowedEnv {
		if value, set := os.LookupEnv(key); set {
			env = append(env, key+"="+value)
		}
	}
	env = slices.Concat(env, extra, handshake)
	for i, f := range files {
		env = append(env, f.variable+"="+strconv.Itoa(firstInherited+i))
	}
	return env
}
