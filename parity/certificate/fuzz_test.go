package certificate_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"testing"

	"samebits/bridge/certificate"
	"samebits/bridge/fuzztest"
	"samebits/parity/gate"
)

// checkFile checks what holds of any file of a certificate: it is refused for people to read, or it is what its statement signed
// again gives, and says what a certificate must.
func checkFile(t *testing.T, data []byte, q certificate.Question) (valid bool) {
	t.Helper()
	var c *certificate.Certificate
	var err error
	fuzztest.Bounded(t, len(data), 4<<20, 2000, func() { c, err = certificate.Check(data, q) })
	fuzztest.Refused(t, err)
	_, peeked := certificate.Peek(data)
	fuzztest.Refused(t, peeked)
	if err != nil {
		return false
	}
	if peeked != nil {
		t.Errorf("it is valid, and cannot be read: %v", peeked)
	}
	if again, err := c.Sign(key); err != nil || !bytes.Equal(again, data) {
		t.Errorf("signed again it is another file (%v)", err)
	}
	for _, id := range gate.Order(c.Predicate.Cell.Mode) {
		if f := c.Predicate.Gates[id]; f.Outcome != gate.Passed && (id != gate.OtherDevice || f.Reason != gate.NoSecondDevice) {
			t.Errorf("valid without %s", id)
		}
	}
	if len(c.Signers) != 1 || c.Predicate.Key["driver"] != q.Here.Key["driver"] {
		t.Error("valid without a signer, or elsewhere")
	}
	return true
}

func FuzzCheck(f *testing.F) {
	s := granted(f, gate.Predict)
	good, q := signed(f, s), question(s)
	f.Add(good)
	f.Add([]byte(`{"payload":"e30=","payloadType":"application/vnd.in-toto+json","signatures":[{"keyid":"","sig":""}]}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		same := bytes.Equal(data, good)
		if checkFile(t, data, q) != same {
			t.Error("another file than the one that was signed is valid, or that one is not")
		}
		support := certificate.Decide(asked(s), []certificate.File{{Path: "x" + certificate.Extension, Data: data}}, q.Trust, q.Now)
		if support.Supported() != same {
			t.Error("a program that predicts decides otherwise")
		}
		fuzztest.Said(t, support.Problems().Err())
	})
}

// sealed signs any payload, as who holds a trusted key can.
func sealed(t testing.TB, payload []byte) []byte {
	t.Helper()
	data, err := json.Marshal(certificate.Envelope{
		Payload: base64.StdEncoding.EncodeToString(payload), PayloadType: certificate.PayloadType,
		Signatures: []certificate.Signature{{KeyID: certificate.KeyID(certificate.Public(key)),
			Sig: base64.StdEncoding.EncodeToString(ed25519.Sign(key, certificate.PAE(certificate.PayloadType, payload)))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

func payload(t testing.TB, s certificate.Statement) []byte {
	t.Helper()
	var e certificate.Envelope
	if err := json.Unmarshal(signed(t, s), &e); err != nil {
		t.Fatal(err)
	}
	data, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// FuzzPayload signs whatever comes: no signature keeps it from being read.
func FuzzPayload(f *testing.F) {
	s := granted(f, gate.Predict)
	q := question(s)
	f.Add(payload(f, s))
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://samebits.dev/certificate/v1","subject":[],"predicate":{}}`))
	f.Fuzz(func(t *testing.T, payload []byte) { checkFile(t, sealed(t, payload), q) })
}

// FuzzStatement signs a sound statement some values of which are others, which other bytes would mostly not leave JSON.
func FuzzStatement(f *testing.F) {
	var payloads [2][]byte
	var questions [2]certificate.Question
	for i, mode := range []string{gate.Predict, gate.Train} {
		s := granted(f, mode)
		payloads[i], questions[i] = payload(f, s), question(s)
		f.Add(i == 1, []byte{})
		f.Add(i == 1, fuzztest.Edit(40, 0, 0))
		f.Add(i == 1, fuzztest.Edit(90, 5, 'x'))
	}
	f.Fuzz(func(t *testing.T, trains bool, edits []byte) {
		i := 0
		if trains {
			i = 1
		}
		checkFile(t, sealed(t, fuzztest.EditJSON(t, payloads[i], edits)), questions[i])
	})
}

// FuzzTrust reads lists of trusted keys and the keys in them.
func FuzzTrust(f *testing.F) {
	list, err := trust().Text()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(list)
	f.Add([]byte(`{"schema":1,"keys":[]}`))
	f.Add(certificate.PublicPEM(certificate.Public(key)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if public, err := certificate.ParsePublic(data, "key"); err != nil {
			fuzztest.Refused(t, err)
		} else if again, err := certificate.ParsePublic(certificate.PublicPEM(public), "key"); err != nil || !again.Equal(public) {
			t.Errorf("written and read again it is another key (%v)", err)
		}
		var all certificate.Trust
		var err error
		fuzztest.Bounded(t, len(data), 1<<20, 400, func() { all, err = certificate.ParseTrust(data, "list") })
		if err != nil {
			fuzztest.Refused(t, err)
			return
		}
		text, err := all.Text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := certificate.ParseTrust(text, "list")
		if err != nil {
			t.Fatalf("written and read again it is refused: %v", err)
		}
		if twice, err := again.Text(); err != nil || !bytes.Equal(twice, text) {
			t.Errorf("it has two spellings (%v)", err)
		}
	})
}
