package recording

// Limits on what Decode and Verify take. They are far above any real step and far below what would hurt a machine.
const (
	MaxBytes      = 256 << 20 // of an encoded recording
	MaxElements   = 4 << 20   // messages and list items of all kinds together
	MaxStorages   = 1_000_000
	MaxValues     = 2_000_000
	MaxOperations = 1_000_000
	MaxRank       = 64 // PyTorch's
	MaxDepth      = 4  // of lists in arguments; schemas have at most a list of lists
	MaxTotalBytes = 1 << 44
	MaxAlignment  = 512
	maxName       = 512
	maxText       = 4096
	maxExtent     = 65536 // image size and batch
)
