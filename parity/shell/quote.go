// Package shell writes commands that a person can paste.
package shell

import "strings"

// Quote keeps a shell from taking a word for anything else.
func Quote(s string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-_./@:,+", c)
	}
	if s == "" || strings.ContainsFunc(s, func(c rune) bool { return !plain(c) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}
