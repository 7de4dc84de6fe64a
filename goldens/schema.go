package goldens

import (
	"bytes"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// MustCompile compiles one of the schemas here, formats asserted. They lie in the program, and tests compile each.
func MustCompile(schema []byte) *jsonschema.Schema {
	const name = "schema.json"
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err == nil {
		err = c.AddResource(name, document)
	}
	if err == nil {
		var compiled *jsonschema.Schema
		if compiled, err = c.Compile(name); err == nil {
			return compiled
		}
	}
	panic(fmt.Sprintf("goldens: a schema of ours: %v", err))
}
