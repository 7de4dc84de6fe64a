package certificate

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"samebits/bridge/diag"
)

// PayloadType is what DSSE envelopes of in-toto statements are marked with.
const PayloadType = "application/vnd.in-toto+json"

// Limit is how long an envelope may be.
const Limit = 8 << 20

// Envelope is a DSSE envelope.
type Envelope struct {
	Payload     string      `json:"payload"` // base64
	PayloadType string      `json:"payloadType"`
	Signatures  []Signature `json:"signatures"`
}

// Signature is one signature of an envelope.
type Signature struct {
	KeyID string `json:"keyid"`
	Sig   string `json:"sig"` // base64
}

// PAE is the pre-authentication encoding of DSSE (protocol.md, "Signature Definition"): what is signed. Envelopes are read
// here and not by a library, because the libraries take two alphabets of base64, and more than one spelling of a file.
func PAE(payloadType string, payload []byte) []byte {
	head := fmt.Sprintf("DSSEv1 %d %s %d ", len(payloadType), payloadType, len(payload))
	return append([]byte(head), payload...)
}

// canonical writes JSON in the one way that certificates have: keys sorted, no space, nothing escaped that need not be. So
// no byte of a file can be changed without making it another file, and no two readers can understand it differently.
func canonical(data []byte) ([]byte, error) {
	var any any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&any); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something comes behind the JSON value")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(any); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

func marshalCanonical(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return canonical(data)
}

// decodeStrictly reads canonical JSON that has no other fields than v.
func decodeStrictly(data []byte, what string, v any) error {
	again, err := canonical(data)
	if err != nil {
		return diag.New(Unreadable, what, "it is no JSON: %v", err)
	}
	if !bytes.Equal(again, data) {
		return diag.New(NotCanonical, what, "it is not written as certificates are: keys sorted, no spaces, each once")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return diag.New(Unreadable, what, "%v", err)
	}
	return nil
}

// seal signs a payload and gives the envelope's file.
func seal(payload []byte, key ed25519.PrivateKey) ([]byte, error) {
	sig := ed25519.Sign(key, PAE(PayloadType, payload))
	file, err := marshalCanonical(Envelope{
		Payload:     base64.StdEncoding.EncodeToString(payload),
		PayloadType: PayloadType,
		Signatures:  []Signature{{KeyID: KeyID(Public(key)), Sig: base64.StdEncoding.EncodeToString(sig)}},
	})
	return append(file, '\n'), err
}

// open reads an envelope's file, and gives its payload with the signatures. It does not look whose they are.
func open(data []byte) (payload []byte, signatures map[string][]byte, err error) {
	if len(data) > Limit {
		return nil, nil, diag.New(Unreadable, "envelope", "it has %d bytes; a certificate has at most %d", len(data), Limit)
	}
	line, ended := bytes.CutSuffix(data, []byte("\n"))
	if !ended {
		return nil, nil, diag.New(Unreadable, "envelope", "it does not end with a line's end: it is cut short, or no certificate")
	}
	var e Envelope
	if err := decodeStrictly(line, "envelope", &e); err != nil {
		return nil, nil, err
	}
	if again, err := marshalCanonical(e); err != nil || !bytes.Equal(again, line) {
		return nil, nil, diag.New(NotCanonical, "envelope", "it has fields missing, or spelled in another way")
	}
	if e.PayloadType != PayloadType {
		return nil, nil, diag.New(OtherType, "payloadType", "%q instead of %q", e.PayloadType, PayloadType)
	}
	if payload, err = decode64(e.Payload, "payload"); err != nil {
		return nil, nil, err
	}
	if len(e.Signatures) == 0 {
		return nil, nil, diag.New(Unsigned, "signatures", "nobody signed it")
	}
	signatures = map[string][]byte{}
	for i, s := range e.Signatures {
		at := fmt.Sprintf("signatures[%d]", i)
		if signatures[s.KeyID] != nil {
			return nil, nil, diag.New(Contradictory, at, "one key signed twice")
		}
		if signatures[s.KeyID], err = decode64(s.Sig, at); err != nil {
			return nil, nil, err
		}
	}
	return payload, signatures, nil
}

// decode64 takes base64 in its one right spelling.
func decode64(text, at string) ([]byte, error) {
	data, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(data) != text {
		return nil, diag.New(NotCanonical, at, "it is no base64 as certificates have it")
	}
	return data, nil
}
