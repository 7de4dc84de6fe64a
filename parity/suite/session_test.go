package suite

import (
	"strings"
	"testing"
)

func TestRotation(t *testing.T) {
	order := rotation([]string{"A", "B", "C"}, 5)
	if got := strings.Join(order, ""); got != "ABCBACABCBACABC" {
		t.Errorf("order %s", got)
	}
}
