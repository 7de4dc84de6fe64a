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

// Certificates holds the folder of certificates, under certificates/.
//
//go:embed certificates
var Certificates embed.FS

// CertificateSchema is the JSON schema of what a certificate signs.
//
//go:embed certificates/schema.json
var CertificateSchema []byte

// CertificateKeys is the list of the public keys whose certificates everybody trusts who trusts this program.
//
//go:embed certificates/keys/trusted.json
var CertificateKeys []byte
