package certificate_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"testing"

	"samebits/parity/certificate"
	"samebits/parity/gate"
)

// Whatever a file holds, it is refused for people to read, unless it is the one that was signed.
func FuzzCheck(f *testing.F) {
	s := granted(f, gate.Predict)
	good, q := signed(f, s), question(s)
	f.Add(good)
	f.Add([]byte(`{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"keyid":"","sig":""}]}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := certificate.Check(data, q)
		if valid := err == nil; valid != bytes.Equal(data, good) {
			t.Errorf("valid: %t", valid)
		}
		reasons(t, err)
		_, err = certificate.Peek(data)
		reasons(t, err)
	})
}

// Whatever a trusted key signs, it is read without a crash, and only a whole statement is valid.
func FuzzPayload(f *testing.F) {
	s := granted(f, gate.Predict)
	q := question(s)
	var e certificate.Envelope
	if err := json.Unmarshal(signed(f, s), &e); err != nil {
		f.Fatal(err)
	}
	good, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://samebits.dev/certificate/v1","subject":[],"predicate":{}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		e.Payload = base64.StdEncoding.EncodeToString(payload)
		e.Signatures[0].Sig = base64.StdEncoding.EncodeToString(ed25519.Sign(key, certificate.PAE(e.PayloadType, payload)))
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		c, err := certificate.Check(append(data, '\n'), q)
		reasons(t, err)
		if err == nil && c.Predicate.Gates[gate.Replay].Outcome != gate.Passed {
			t.Error("valid without a gate")
		}
	})
}
