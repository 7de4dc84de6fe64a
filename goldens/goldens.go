// Package goldens gives the program the data it is judged by: real input images and the schemas of results.
package goldens

import "embed"

// Images holds the photographs of the photograph probe, under images/.
//
//go:embed images/*.png
var Images embed.FS

// ResultSchema is the JSON schema that every result obeys.
//
//go:embed results/schema.json
var ResultSchema []byte

// BenchSchema is the JSON schema that every report of parity bench obeys.
//
//go:embed bench/schema.json
var BenchSchema []byte
