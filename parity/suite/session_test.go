package suite

import (
	"math"
	"strings"
	"testing"

	"samebits/bridge/arm"
)

func TestRotation(t *testing.T) {
	order := rotation([]string{"A", "B", "C"}, 5)
	if got := strings.Join(order, ""); got != "ABCBACABCBACABC" {
		t.Errorf("order %s", got)
	}
}

// realesrgan in bf16 on an H200: eager reserves 6.5 GiB, 5.0 of which are allocated; the graph 12.9.
func TestNeeds(t *testing.T) {
	const gib = 1 << 30
	all := crew{references: 3, graphs: 1, natives: 3}
	for _, c := range []struct {
		name     string
		crew     crew
		recorder arm.Stats
		low      int64
		high     int64
	}{
		{"all arms at once", all, arm.Stats{PeakBytes: 5 * gib, ReservedBytes: 65 * gib / 10}, 58 * gib, 59 * gib},
		{"one after the other", oneByOne, arm.Stats{PeakBytes: 5 * gib, ReservedBytes: 65 * gib / 10}, 25 * gib, 26 * gib},
		{"no caching allocator", all, arm.Stats{PeakBytes: gib}, 13 * gib, 14 * gib},
		{"less than nothing", all, arm.Stats{PeakBytes: -gib, ReservedBytes: math.MinInt64}, 4 * gib, 5 * gib},
		{"more than any device", all, arm.Stats{PeakBytes: math.MaxInt64, ReservedBytes: math.MaxInt64}, 1 << 50, math.MaxInt64},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.crew.needs(c.recorder); got < c.low || got > c.high {
				t.Errorf("%.1f GiB", float64(got)/gib)
			}
		})
	}
}
