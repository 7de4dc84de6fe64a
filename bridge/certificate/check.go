package certificate

import (
	"bytes"
	"crypto/ed25519"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"samebits/bridge/diag"
	"samebits/goldens"
)

// Question is what a certificate is held against.
type Question struct {
	Now   time.Time
	Trust Trust
	Here  *Here // nil: only whether it is sound is asked, not whether it is for this machine
}

// Certificate is a certificate that somebody trusted signed.
type Certificate struct {
	Statement
	Signers []Trusted
}

// clocks may differ by so much.
const skew = 5 * time.Minute

// Check says whether a certificate's file is valid, with all reasons why it is not. What nobody trusted signed is not looked
// into, and gives no Certificate.
func Check(data []byte, q Question) (*Certificate, error) {
	payload, signatures, err := open(data)
	if err != nil {
		return nil, err
	}
	c := &Certificate{}
	var ps diag.Problems
	for _, id := range slices.Sorted(maps.Keys(signatures)) { // what is said of one file is always the same
		key, known := q.Trust.find(id)
		switch {
		case !known:
			ps.Add(UnknownKey, "signatures", "nobody here trusts the key %s", Short(id))
		case !ed25519.Verify(key.Public, PAE(PayloadType, payload), signatures[id]):
			ps.Add(BadSignature, "signatures", "it is not what the key %s (%s) signed", key.Name, Short(id))
		default:
			c.Signers = append(c.Signers, key)
		}
	}
	if len(ps) > 0 {
		return nil, ps
	}
	if c.Statement, err = parse(payload); err != nil {
		return nil, err
	}
	for _, key := range c.Signers {
		if q.Now.After(key.NotAfter) {
			ps.Add(TrustExpired, "signatures", "the key %s was trusted until %s", key.Name, Day(key.NotAfter))
		}
	}
	if q.Now.Add(skew).Before(c.Predicate.Created) {
		ps.Add(NotYet, "predicate.created", "it was made at %s, which is yet to come", c.Predicate.Created.Format(time.RFC3339))
	}
	if q.Now.After(c.Predicate.Expires) {
		ps.Add(Expired, "predicate.expires", "it was good until %s", Day(c.Predicate.Expires))
	}
	ps = append(ps, c.Contradictions()...)
	if q.Here != nil {
		ps = append(ps, q.Here.differences(c.Predicate)...)
	}
	return c, ps.Err()
}

// Peek reads a certificate without asking who signed it: for showing alone.
func Peek(data []byte) (Statement, error) {
	payload, _, err := open(data)
	if err != nil {
		return Statement{}, err
	}
	return parse(payload)
}

// Day writes a day.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// parse reads a statement that obeys the schema.
func parse(payload []byte) (Statement, error) {
	var s Statement
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(payload))
	if err != nil {
		return s, diag.New(Unreadable, "payload", "it is no JSON: %v", err)
	}
	if object, ok := document.(map[string]any); ok {
		for field, want := range map[string]string{"_type": StatementType, "predicateType": PredicateType} {
			if object[field] != want {
				return s, diag.New(OtherType, field, "it is %v instead of %s", object[field], want)
			}
		}
	}
	if err := schema().Validate(document); err != nil {
		return s, diag.New(AgainstSchema, "payload", "%v", err)
	}
	if err := decodeStrictly(payload, "payload", &s); err != nil {
		return s, err
	}
	// Whatever has been read must be all that is there, and spelled alike: names of fields count in capitals, too.
	if again, err := marshalCanonical(s); err != nil || !bytes.Equal(again, payload) {
		return s, diag.New(NotCanonical, "payload", "it is not written as certificates are")
	}
	return s, nil
}

// schema is that of statements.
var schema = sync.OnceValue(func() *jsonschema.Schema { return goldens.MustCompile(goldens.CertificateSchema) })

// CheckWhenMade checks a certificate as of the moment when it was made: what expires stays what it was.
func CheckWhenMade(data []byte, trust Trust) (*Certificate, error) {
	c, err := Check(data, Question{Trust: trust})
	if c == nil {
		return nil, err
	}
	return Check(data, Question{Now: c.Predicate.Created, Trust: trust})
}
