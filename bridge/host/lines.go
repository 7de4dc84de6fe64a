package host

import "bytes"

// lineWriter gives whole lines to take: what a plugin sends over go-plugin's own stream of its output.
type lineWriter struct {
	take func(string)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		line, rest, found := bytes.Cut(w.rest, []byte("\n"))
		if !found && len(w.rest) < maxLine {
			return len(p), nil
		}
		w.take(string(line))
		w.rest = append(w.rest[:0], rest...)
	}
}
