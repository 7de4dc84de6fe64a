package certificate

// What a certificate takes over from a result. Packages parity/gate and parity/result have these types under their own names.

// Cut says where a cell's captured segment ends. What comes behind it runs eagerly, and the gate SEAM proves the seam.
type Cut struct {
	Segment string `json:"segment"` // LibreYOLO's name of it
	Rest    bool   `json:"rest"`    // there is a rest here to run behind it
}

// Digests names everything that went in and came out. docs/digests.md shows how to make them again with b3sum.
type Digests struct {
	Recording string `json:"recording,omitempty"`
	Weights   string `json:"weights,omitempty"`
	// Inputs has, by probe (of a training run by step: "step 7") and input, the digest of the tensor.
	Inputs map[string]map[string]string `json:"inputs,omitempty"`
	// Outputs has, by arm, probe and output, the digest of the tensor. A graph arm's are those of its last replay. Of a
	// training run it has the last step.
	Outputs map[string]map[string]map[string]string `json:"outputs,omitempty"`
	// Steps has, by arm, one digest for each step of a training run: of the list of all tensors' digests.
	Steps map[string][]string `json:"steps,omitempty"`
}

// Timing is how long a step took inside an arm's process, transfers left out.
type Timing struct {
	MedianMS   float64 `json:"median_ms"`
	MinMS      float64 `json:"min_ms"`
	Iterations int     `json:"iterations"`
	Warmup     int     `json:"warmup"`
}
