package device

// Direct is what a Program may offer to a caller whose tensors lie on the same device, in the same process: copies that
// never leave the device, and an order between the program's stream and the caller's. Streams and addresses are the
// driver's own (CUstream, CUdeviceptr). Nothing here waits.
type Direct interface {
	// CopyAsync copies between two addresses of the device, in order with the program's launches.
	CopyAsync(to, from uintptr, bytes int64) error
	// After makes what the program launches next wait for what was launched on stream before.
	After(stream uintptr) error
	// Before makes what is launched on stream next wait for what the program launched before.
	Before(stream uintptr) error
}
