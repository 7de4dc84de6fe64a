// Package certificate grants certificates, and says by them which cells have SUPPORTS_CUDA_GRAPH. What a certificate is and how one
// is checked is package bridge/certificate, which those use, too, who predict; its names stand here as well.
package certificate

import "samebits/bridge/certificate"

// What a certificate is made of.
type (
	Statement   = certificate.Statement
	Subject     = certificate.Subject
	Predicate   = certificate.Predicate
	Cell        = certificate.Cell
	Replays     = certificate.Replays
	Probe       = certificate.Probe
	Plan        = certificate.Plan
	Key         = certificate.Key
	Here        = certificate.Here
	Question    = certificate.Question
	Certificate = certificate.Certificate
	Envelope    = certificate.Envelope
	Signature   = certificate.Signature
	Trust       = certificate.Trust
	Trusted     = certificate.Trusted
	Keyring     = certificate.Keyring
	File        = certificate.File
)

// How one is read, checked and signed for.
var (
	Check         = certificate.Check
	CheckWhenMade = certificate.CheckWhenMade
	Peek          = certificate.Peek
	PAE           = certificate.PAE
	KeyOf         = certificate.KeyOf
	KeyID         = certificate.KeyID
	ParseTrust    = certificate.ParseTrust
	ParsePublic   = certificate.ParsePublic
	PublicPEM     = certificate.PublicPEM
	Public        = certificate.Public
	UserKeyring   = certificate.UserKeyring
	BuiltIn       = certificate.BuiltIn
	Trusting      = certificate.Trusting
	ReadFile      = certificate.ReadFile
	ReadFolder    = certificate.ReadFolder
	Goldens       = certificate.Goldens
)

// Constants of certificates, and the reasons for which one is not valid.
const (
	StatementType    = certificate.StatementType
	PredicateType    = certificate.PredicateType
	PayloadType      = certificate.PayloadType
	Schema           = certificate.Schema
	Extension        = certificate.Extension
	Lifetime         = certificate.Lifetime
	Limit            = certificate.Limit
	FolderVariable   = certificate.FolderVariable
	Variable         = certificate.Variable
	RecordingSubject = certificate.RecordingSubject
	EngineSubject    = certificate.EngineSubject
	GoldensSubject   = certificate.GoldensSubject

	Unreadable      = certificate.Unreadable
	NotCanonical    = certificate.NotCanonical
	OtherType       = certificate.OtherType
	Unsigned        = certificate.Unsigned
	BadSignature    = certificate.BadSignature
	UnknownKey      = certificate.UnknownKey
	TrustExpired    = certificate.TrustExpired
	Expired         = certificate.Expired
	NotYet          = certificate.NotYet
	AgainstSchema   = certificate.AgainstSchema
	Contradictory   = certificate.Contradictory
	GateNotPassed   = certificate.GateNotPassed
	EnvironmentLess = certificate.EnvironmentLess
	NoGPU           = certificate.NoGPU
	OtherGPU        = certificate.OtherGPU
	OtherDriver     = certificate.OtherDriver
	OtherCUDA       = certificate.OtherCUDA
	OtherCUDNN      = certificate.OtherCUDNN
	OtherCUBLAS     = certificate.OtherCUBLAS
	OtherNVRTC      = certificate.OtherNVRTC
	OtherTorch      = certificate.OtherTorch
	OtherEngine     = certificate.OtherEngine
	OtherRecording  = certificate.OtherRecording
	OtherProfile    = certificate.OtherProfile
	None            = certificate.None

	KeyMissing   = certificate.KeyMissing
	KeyExposed   = certificate.KeyExposed
	KeyInvalid   = certificate.KeyInvalid
	KeyThere     = certificate.KeyThere
	TrustInvalid = certificate.TrustInvalid
)

// The reasons for which no certificate is made.
const (
	NotExact    = "VERDICT_NOT_EXACT"
	NotOnGPU    = "NOT_ON_GPU"
	Incomplete  = "ENVIRONMENT_INCOMPLETE"
	SidesDiffer = "LIBRARIES_DIFFER" // the engine's from PyTorch's
	OtherFile   = "FILE_CHANGED"     // a file is not the one that was verified
	NoProof     = "RESULT_IS_NO_PROOF"
	BadLifetime = "LIFETIME_INVALID"
)
