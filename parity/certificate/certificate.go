// Package certificate grants certificates, and says by them which cells have SUPPORTS_CUDA_GRAPH. What a certificate is and how one
// is checked is package bridge/certificate, which those use, too, who predict.
package certificate

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
