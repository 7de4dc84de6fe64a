package recording

import (
	"google.golang.org/protobuf/proto"

	"samebits/bridge/diag"
	"samebits/bridge/digest"
	"samebits/bridge/proto/samebitsv1"
)

// Decode reads a recording that may come from anywhere. What it returns is verified and safe to run; its Digest is that
// of data. The error lists every problem found (diag.Problems).
func Decode(data []byte) (*Recording, error) {
	unknown, err := scan(data)
	if err != nil {
		return nil, err
	}
	var m samebitsv1.Recording
	if err := (proto.UnmarshalOptions{RecursionLimit: recursionLimit}).Unmarshal(data, &m); err != nil {
		return nil, diag.New("TORN_RECORDING", place(0), "it is no recording, or a torn one: %v", err)
	}
	// A newer version may have fields that we do not know: the version is what to say then.
	if v := m.GetHeader().GetSchema(); v != Schema {
		return nil, diag.New("SCHEMA_VERSION", "header.schema", "the recording has schema version %d, this program reads version %d", v, Schema)
	}
	if len(unknown) > 0 {
		return nil, unknown
	}
	r, problems := fromProto(&m)
	problems = append(problems, Verify(r)...)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	r.Digest = digest.Bytes(data)
	return r, nil
}

// Encode gives the bytes of r: equal recordings give equal bytes. It does not verify; an index that the wire cannot hold
// is an error.
func Encode(r *Recording) ([]byte, error) {
	m, err := toProto(r)
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(m)
}
