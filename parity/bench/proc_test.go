package bench

import (
	"os"
	"testing"
)

func TestRSS(t *testing.T) {
	if most, _ := rss(os.Getpid()); most < 1<<20 || most%4096 != 0 {
		t.Errorf("this process had %d bytes", most)
	}
	for _, nobody := range []int{0, -1, 1 << 30} {
		if most, shared := rss(nobody); most != 0 || shared != 0 {
			t.Errorf("process %d had %d and %d bytes", nobody, most, shared)
		}
	}
}
