package serve

import (
	"log/slog"
	"os"
	"strings"
	"sync"
)

// Logger writes lines with levels that the host understands. What is printed on standard output or error reaches the
// host too, as lines without fields.
var Logger = sync.OnceValue(func() *slog.Logger {
	return slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: hclogKeys}))
})

// stderr is kept from the start: go-plugin replaces os.Stderr for a while.
var stderr = os.Stderr

// hclogKeys names the built-in fields as hclog does, which is what go-plugin hosts read.
func hclogKeys(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.TimeKey:
		a.Key = "@timestamp"
		a.Value = slog.StringValue(a.Value.Time().Format("2006-01-02T15:04:05.000000Z07:00"))
	case slog.LevelKey:
		a.Key = "@level"
		a.Value = slog.StringValue(strings.ToLower(a.Value.String()))
	case slog.MessageKey:
		a.Key = "@message"
	}
	return a
}
