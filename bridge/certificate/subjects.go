package certificate

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"samebits/bridge/digest"
)

// SubjectOf names a file's bytes.
func SubjectOf(name string, data []byte) Subject {
	sum := sha256.Sum256(data)
	return Subject{Name: name, Digest: map[string]string{"sha256": hex.EncodeToString(sum[:]), "blake3": digest.Bytes(data)}}
}

// Goldens is the list of what all arms gave, a line each: digest, two spaces, ARM/PROBE/OUTPUT, in the order of these names; of a training run
// also ARM/step N. It is the file that the subject goldens names.
func Goldens(d Digests) []byte {
	var lines []string
	for arm, probes := range d.Outputs {
		for probe, outputs := range probes {
			for output, sum := range outputs {
				lines = append(lines, fmt.Sprintf("%s/%s/%s\x00%s", arm, probe, output, sum))
			}
		}
	}
	for arm, steps := range d.Steps {
		for i, sum := range steps {
			lines = append(lines, fmt.Sprintf("%s/step %06d\x00%s", arm, i+1, sum))
		}
	}
	slices.Sort(lines)
	var b strings.Builder
	for _, line := range lines {
		name, sum, _ := strings.Cut(line, "\x00")
		fmt.Fprintf(&b, "%s  %s\n", sum, name)
	}
	return []byte(b.String())
}

// Sign gives the file of a certificate.
func (s Statement) Sign(key ed25519.PrivateKey) ([]byte, error) {
	payload, err := marshalCanonical(s)
	if err != nil {
		return nil, fmt.Errorf("write certificate: %w", err)
	}
	return seal(payload, key)
}
