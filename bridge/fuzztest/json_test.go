package fuzztest_test

import (
	"slices"
	"testing"

	"samebits/bridge/fuzztest"
)

func TestEditJSON(t *testing.T) {
	const document = `{"b":[1,2,{"c":"x"}],"a":"text"}`
	for _, c := range []struct {
		name  string
		edits []byte
		want  string
	}{
		{"nothing", nil, `{"a":"text","b":[1,2,{"c":"x"}]}`},
		{"a value of an object goes", fuzztest.Edit(1, 0, 0), `{"b":[1,2,{"c":"x"}]}`},
		{"an item goes", fuzztest.Edit(3, 0, 0), `{"a":"text","b":[2,{"c":"x"}]}`},
		{"an item twice", fuzztest.Edit(4, 1, 0), `{"a":"text","b":[1,2,2,{"c":"x"}]}`},
		{"another's value", fuzztest.Edit(1, 2, 5), `{"a":{"c":"x"},"b":[1,2,{"c":"x"}]}`},
		{"the whole into a part", fuzztest.Edit(3, 2, 0), `{"a":"text","b":[{"a":"text","b":[1,2,{"c":"x"}]},2,{"c":"x"}]}`},
		{"a number", fuzztest.Edit(1, 4, -7), `{"a":-7,"b":[1,2,{"c":"x"}]}`},
		{"text", fuzztest.Edit(1, 5, 'z'), `{"a":"textz","b":[1,2,{"c":"x"}]}`},
		{"all goes, then more", slices.Concat(fuzztest.Edit(0, 0, 0), fuzztest.Edit(0, 0, 0)), `null`},
		{"half an edit", fuzztest.Edit(0, 0, 0)[:5], `{"a":"text","b":[1,2,{"c":"x"}]}`},
	} {
		if got := string(fuzztest.EditJSON(t, []byte(document), c.edits)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}
