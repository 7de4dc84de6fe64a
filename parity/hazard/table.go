package hazard

import (
	"samebits/parity/gate"
	"samebits/parity/result"
)

// Cases are the cases in the order of their ids. What a family cannot have, or a prediction, is left out, and says why.
var Cases = []Case{
	// A: host values and host state frozen at capture
	{ID: "C01", Section: "A", Title: "Adam step counter / bias correction on the host", Threads: []string{"pytorch/pytorch/issues/76368", "pytorch/pytorch/pull/77862"}, LeftOut: "training: the step count of an optimizer; native keeps it in device memory, and STATE compares it"},
	{ID: "C02", Section: "A", Title: "Learning rate passed as a float", Threads: []string{"pytorch/pytorch/issues/106802", "microsoft/dion/pull/104", "ooples/AiDotNet.Tensors/pull/549"}, LeftOut: "training: the learning rate; HYPER changes it at every step"},
	{ID: "C04", Section: "A", Title: "First-step branch (momentum buffer creation)", Threads: []string{"flagos-ai/FlagGems/pull/5878"}, Plants: []Plant{
		{Family: "c04-first-steps", Verdict: result.Refused, Reasons: []gate.Reason{"RECORDING_CHANGES_WITH_STEP"}},
		{Family: "c04-after-a-day", Verdict: result.Refused, Reasons: []gate.Reason{"OUTSIDE_WORLD"}},
		{Family: "c04-by-a-file", Verdict: result.Refused, Reasons: []gate.Reason{"OUTSIDE_WORLD"}},
	}},
	{ID: "C06", Section: "A", Title: "Loss weight / aggregator reads the iteration as an int", Threads: []string{"NVIDIA/physicsnemo-sym/issues/279"}, Plants: []Plant{
		{Family: "c06-step-number", Verdict: result.Refused, Reasons: []gate.Reason{"RECORDING_CHANGES_WITH_STEP"}},
	}},
	{ID: "C07", Section: "A", Title: "Loss scale re-created out of place", Threads: []string{"pytorch/pytorch/pull/55562"}, Plants: []Plant{
		{Family: "c07-buffer-made-anew", Verdict: result.Refused, Reasons: []gate.Reason{"BUFFER_REPLACED_IN_REGION"}},
	}},
	{ID: "C09", Section: "A", Title: "FP8 scale / first-microbatch flag", Threads: []string{"NVIDIA/TransformerEngine/pull/825", "NVIDIA/TransformerEngine/pull/820", "NVIDIA/TransformerEngine/pull/2119"}, Plants: []Plant{
		{Family: "c09-toggled-flag", Verdict: result.Refused, Reasons: []gate.Reason{"RECORDING_CHANGES_WITH_STEP"}},
	}},
	{ID: "C11", Section: "A", Title: "Warm-up forwards advance BatchNorm statistics", Threads: []string{"LibreYOLO/libreyolo/pull/671"}, Plants: []Plant{
		{Family: "c11-statistics-moved", Verdict: result.Refused, Reasons: []gate.Reason{"WRITES_STATE"}},
	}},
	{ID: "C12", Section: "A", Title: "BatchNorm cumulative average (momentum None)", Threads: []string{"pytorch/pytorch/issues/194504"}, LeftOut: "training: statistics of a batch norm that trains"},
	{ID: "C14", Section: "A", Title: "Warm-up on uninitialised memory poisons running stats", Threads: []string{"ultralytics/ultralytics/pull/14829"}, Plants: []Plant{
		{Family: "c14-undefined-memory", Verdict: result.Refused, Reasons: []gate.Reason{"UNINITIALISED_MEMORY"}},
	}},
	{ID: "C16", Section: "A", Title: "Region changes meaning mid-run", Threads: []string{"LibreYOLO/libreyolo/pull/716"}, Plants: []Plant{
		{Family: "c16-switched-branch", Verdict: result.Refused, Reasons: []gate.Reason{"RECORDING_CHANGES_WITH_STEP"}},
	}},
	{ID: "C17", Section: "A", Title: "Intermediate kept on self is not refreshed", Threads: []string{"pytorch/pytorch/issues/114844"}, Plants: []Plant{
		{Family: "c17-kept-activation", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
	}},

	// B: random numbers
	{ID: "C19", Section: "B", Title: "Seed captured, masks repeat", Threads: []string{"pytorch/pytorch/issues/84614", "pytorch/pytorch/pull/84967"}, Plants: []Plant{
		{Family: "c19-dropout", Verdict: result.Refused, Reasons: []gate.Reason{"RANDOM_OPERATION"}},
	}},
	{ID: "C21", Section: "B", Title: "Activation recompute under capture", Threads: []string{"pytorch/pytorch/issues/162504", "pytorch/pytorch/issues/83148", "pytorch/pytorch/issues/170535"}, Plants: []Plant{
		{Family: "c21-reseeded", Verdict: result.Refused, Reasons: []gate.Reason{"RNG_STATE_IN_REGION"}},
		{Family: "c21-host-draw", Verdict: result.Refused, Reasons: []gate.Reason{"RNG_STATE_IN_REGION"}},
		{Family: "c21-own-generator", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
	}},
	{ID: "C22", Section: "B", Title: "Library fetches RNG state in forward", Threads: []string{"Dao-AILab/flash-attention/issues/379", "Dao-AILab/flash-attention/pull/166"}, Plants: []Plant{
		{Family: "c22-attention-dropout", Verdict: result.Refused, Reasons: []gate.Reason{"RANDOM_OPERATION"}},
	}},
	{ID: "C24", Section: "B", Title: "CuDNN recurrent dropout state", Threads: []string{"pytorch/pytorch/pull/56433"}, LeftOut: "training: dropout of a recurrent layer works in training alone, and the cause lies in old versions of a library"},

	// C: buffers, aliasing, lifetimes
	{ID: "C26", Section: "C", Title: "Output overwritten by the next replay", Threads: []string{"pytorch/pytorch/issues/104435", "pytorch/pytorch/issues/148439"}, Plants: []Plant{
		{Family: "c26-same-memory", Verdict: result.Refused, Reasons: []gate.Reason{"WRITES_STATE"}},
	}},
	{ID: "C27", Section: "C", Title: "Overwrite guard differs at 2 and 3 calls", Threads: []string{"pytorch/pytorch/issues/122192"}, Plants: []Plant{
		{Family: "c27-late-change", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
		{Family: "c27-late-global", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
		{Family: "c27-late-enclosed", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
		{Family: "c27-late-class", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
		{Family: "c27-late-iterator", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
	}},
	{ID: "C29", Section: "C", Title: "Accumulation under graph trees raises", Threads: []string{"pytorch/pytorch/issues/169545", "roboflow/rf-detr/pull/1479"}, LeftOut: "training: gradients that accumulate"},
	{ID: "C31", Section: "C", Title: "Grads None versus zeroed", Threads: []string{"pytorch/pytorch/pull/107853", "pytorch/torchtitan/pull/4436"}, LeftOut: "training: gradients that are absent or zero; STATE compares both"},
	{ID: "C32", Section: "C", Title: "Pinned staging block recycled between replays", Threads: []string{"microsoft/onnxruntime/pull/32121"}, Plants: []Plant{
		{Family: "c32-staging-block", Verdict: result.Refused, Reasons: []gate.Reason{"H2D_IN_REGION"}, NeedsGPU: true},
	}},
	{ID: "C34", Section: "C", Title: "H2D skipped instead of captured", Threads: []string{"PaddlePaddle/Paddle/pull/37774", "PaddlePaddle/Paddle/pull/36987"}, Plants: []Plant{
		{Family: "c34-refilled-block", Verdict: result.Refused, Reasons: []gate.Reason{"WRITES_STATE"}},
	}},
	{ID: "C36", Section: "C", Title: "Per-step stream-ordered allocation baked in", Threads: []string{"kekzl/imp/issues/1648"}, Plants: []Plant{
		{Family: "c36-stream-ordered", Verdict: result.Refused, Reasons: []gate.Reason{"ALLOC_IN_REGION"}, NeedsGPU: true},
	}},
	{ID: "C37", Section: "C", Title: "Shared workspace resized after an earlier capture", Threads: []string{"NVIDIA/TensorRT-LLM/pull/16319", "flashinfer-ai/flashinfer/pull/4666"}, Plants: []Plant{
		{Family: "c37-growing-workspace", Verdict: result.Refused, Reasons: []gate.Reason{"WRITES_STATE"}},
	}},
	{ID: "C39", Section: "C", Title: "Two graphs on one stream share cuBLAS workspace", Threads: []string{"pytorch/pytorch/issues/193402"}, LeftOut: "the framework: two graphs of one process share a workspace of cuBLAS; FAIL and MEMORY release and capture graphs beside it"},
	{ID: "C41", Section: "C", Title: "Weights reloaded, addresses drift", Threads: []string{"vllm-project/vllm/issues/48941"}, Plants: []Plant{
		{Family: "c41-old-address", Verdict: result.Differs, Reasons: []gate.Reason{"POINTER_MOVED"}, NeedsGPU: true},
	}},
	{ID: "C42", Section: "C", Title: "Model mutated after capture", Threads: []string{"LibreYOLO/libreyolo/pull/645"}, Plants: []Plant{
		{Family: "c42-swapped-layer", Verdict: result.Refused, Reasons: []gate.Reason{"RECORDING_CHANGES_WITH_STEP"}},
	}},
	{ID: "C44", Section: "C", Title: "Same address, different storage (ABA)", Threads: []string{"InfiniTensor/InfiniTensor/pull/314"}, LeftOut: "the arm: who checks addresses must keep the memory alive; the reference does, and its tests try it"},
	{ID: "C46", Section: "C", Title: "Autocast weight cache", Threads: []string{"pytorch/pytorch/pull/99368", "pytorch/pytorch/pull/82682"}, Plants: []Plant{
		{Family: "c46-kept-cast", Precision: "bf16", Verdict: result.Differs, Reasons: []gate.Reason{"MODEL_MUTATED"}, NeedsGPU: true},
	}},
	{ID: "C47", Section: "C", Title: "Autocast extends into captured backward", Threads: []string{"pytorch/pytorch/issues/120930"}, LeftOut: "training: autocast around backward"},
	{ID: "C49", Section: "C", Title: "Test passes on left-over output", Threads: []string{"flashinfer-ai/flashinfer/pull/4690"}, Plants: []Plant{
		{Family: "c49-left-over", Verdict: result.Refused, Reasons: []gate.Reason{"UNINITIALISED_MEMORY"}},
	}},
	{ID: "C51", Section: "C", Title: "Pageable upload races a non-blocking stream", Threads: []string{"ashalliants/ninfer-3090/pull/44"}, LeftOut: "the arm: an upload from pageable memory that is not waited for; no family does it"},
	{ID: "C52", Section: "C", Title: "Bound CPU input not re-copied", Threads: []string{"microsoft/onnxruntime/issues/29782", "microsoft/onnxruntime/issues/20050"}, Plants: []Plant{
		{Family: "c52-first-input", Verdict: result.Refused, Reasons: []gate.Reason{"INPUT_NOT_SEEN"}},
		{Family: "c52-input-written", Verdict: result.Refused, Reasons: []gate.Reason{"INPUT_MUTATED"}},
	}},
	{ID: "C54", Section: "C", Title: "Failed capture keeps the pool", Threads: []string{"pytorch/pytorch/pull/190348", "pytorch/pytorch/pull/190308"}, Plants: []Plant{
		{Family: "c54-kept-results", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
	}},
	{ID: "C56", Section: "C", Title: "Graph-owned allocation leaks", Threads: []string{"NVIDIA/warp/issues/1429", "JuliaGPU/CUDA.jl/issues/1230"}, Plants: []Plant{
		{Family: "c56-never-freed", Verdict: result.Refused, Reasons: []gate.Reason{"ALLOC_IN_REGION"}, NeedsGPU: true},
	}},
	{ID: "C57", Section: "C", Title: "Out-of-memory retry calls cudaFree in capture", Threads: []string{"pytorch/pytorch/issues/159594"}, LeftOut: "the machine: memory that runs out in a capture; it is OUT_OF_MEMORY, and the arm goes on serving"},
	{ID: "C59", Section: "C", Title: "In-flight delete", Threads: []string{"pytorch/pytorch/pull/176753", "microsoft/onnxruntime/pull/32081"}, LeftOut: "the arm: a graph that is destroyed while it runs; no family destroys graphs"},

	// D: streams, devices, threads, collectives
	{ID: "C61", Section: "D", Title: "Custom kernel ignores the current stream", Threads: []string{"pytorch/pytorch/issues/114048", "thu-ml/SageAttention/pull/371", "thu-ml/SageAttention/issues/392"}, Plants: []Plant{
		{Family: "c61-other-stream", Verdict: result.Refused, Reasons: []gate.Reason{"OFF_STREAM_WORK"}, NeedsGPU: true},
	}},
	{ID: "C62", Section: "D", Title: "Cached launch arguments hold the old stream", Threads: []string{"pytorch/helion/pull/2817"}, Plants: []Plant{
		{Family: "c62-first-stream", Verdict: result.Refused, Reasons: []gate.Reason{"EMPTY_GRAPH"}, NeedsGPU: true},
	}},
	{ID: "C64", Section: "D", Title: "Memset on the legacy stream, unordered", Threads: []string{"kekzl/imp/pull/1709"}, Plants: []Plant{
		{Family: "c64-unseen-write", Verdict: result.Differs, Reasons: []gate.Reason{"ROUNDING_WORSE"}, OnGPU: "OUTPUT_DIFFERS"},
	}},
	{ID: "C66", Section: "D", Title: "Autograd keeps the warm-up stream", Threads: []string{"pytorch/pytorch/pull/180090"}, LeftOut: "training: streams that autograd remembers"},
	{ID: "C67", Section: "D", Title: "Library lease streams: gradients read too early", Threads: []string{"ooples/AiDotNet.Tensors/pull/705"}, Plants: []Plant{
		{Family: "c67-unjoined-stream", Verdict: result.Refused, Reasons: []gate.Reason{"UNJOINED_STREAM"}, NeedsGPU: true},
	}},
	{ID: "C69", Section: "D", Title: "Second device, hidden default-device touch", Threads: []string{"pytorch/pytorch/issues/87794", "pytorch/pytorch/issues/153025", "turboderp-org/exllamav3/issues/230"}, LeftOut: "the machine: needs two GPUs, and the cause was not read; DEV makes another device current where there is one"},
	{ID: "C71", Section: "D", Title: "Helper hides the capture mode", Threads: []string{"pytorch/pytorch/pull/188832", "vllm-project/vllm/pull/48053"}, LeftOut: "the arm: the mode of a capture; THREAD captures beside a busy thread"},
	{ID: "C72", Section: "D", Title: "Worker-thread error swallowed", Threads: []string{"pytorch/pytorch/pull/175425"}, Plants: []Plant{
		{Family: "c72-other-thread", Verdict: result.Refused, Reasons: []gate.Reason{"UNSEEN_WORK"}},
		{Family: "c72-thread-reads", Verdict: result.Refused, Reasons: []gate.Reason{"UNSEEN_WORK"}},
	}},
	{ID: "C74", Section: "D", Title: "Collectives in graph stall", Threads: []string{"pytorch/pytorch/issues/196133", "marin-community/marin/pull/8277", "sgl-project/sglang/pull/31854"}, LeftOut: "not planted: collectives among several processes"},
	{ID: "C76", Section: "D", Title: "GC destroys an object mid-capture", Threads: []string{"pytorch/pytorch/pull/161037", "triton-lang/triton/pull/10712", "mujocolab/mjlab/pull/821", "ROCm/ATOM/pull/1339"}, LeftOut: "not planted: a garbage collection at the wrong moment fails by chance; captures of the reference keep it off"},
	{ID: "C77", Section: "D", Title: "Autograd thread frees between begin and notify", Threads: []string{"pytorch/pytorch/pull/106235"}, LeftOut: "not planted: two threads in the same instant fail by chance"},
	{ID: "C79", Section: "D", Title: "IPC handles and expandable segments", Threads: []string{"vllm-project/vllm/issues/42609", "vllm-project/vllm/pull/46515"}, LeftOut: "not planted: handles between processes"},

	// E: libraries, kernels, hardware
	{ID: "C81", Section: "E", Title: "Module loaded or compiled inside capture", Threads: []string{"NVIDIA/soma-retargeter/issues/15", "pytorch/pytorch/issues/185074"}, LeftOut: "the machine: kernels that are loaded in the first capture; PROC starts with a cold cache"},
	{ID: "C82", Section: "E", Title: "Kernel chosen only while capturing", Threads: []string{"NVIDIA/Megatron-LM/pull/5856"}, Plants: []Plant{
		{Family: "c82-capture-dispatch", Verdict: result.Refused, Reasons: []gate.Reason{"CAPTURE_DEPENDENT_DISPATCH"}, NeedsGPU: true},
	}},
	{ID: "C84", Section: "E", Title: "Refused enqueue records nothing", Threads: []string{"ultralytics/ultralytics/pull/26223", "NVIDIA/TensorRT/issues/2603"}, Plants: []Plant{
		{Family: "c84-left-out", Verdict: result.Refused, Reasons: []gate.Reason{"EMPTY_GRAPH"}, NeedsGPU: true},
	}},
	{ID: "C86", Section: "E", Title: "Fp32 training is not reproducible even eager", Threads: []string{"LibreYOLO/libreyolo/pull/716"}, Plants: []Plant{
		{Family: "c86-other-process", Verdict: result.EagerNoise, Reasons: []gate.Reason{"EAGER_NOISE"}},
	}},
	{ID: "C87", Section: "E", Title: "Atomics in deformable attention / grid_sample / roi_align backward", Threads: []string{"LibreYOLO/libreyolo/pull/716", "pytorch/pytorch/pull/196856", "pytorch/vision/issues/7579"}, Plants: []Plant{
		{Family: "c87-atomics", Verdict: result.EagerNoise, Reasons: []gate.Reason{"STATE_MOVED", "EAGER_NOISE"}, NeedsGPU: true},
	}},
	{ID: "C89", Section: "E", Title: "One-ULP family", Threads: []string{"LibreYOLO/libreyolo/pull/716"}, Plants: []Plant{
		{Family: "c89-other-order", Verdict: result.Differs, Reasons: []gate.Reason{"OUTPUT_DIFFERS"}, NeedsGPU: true},
	}},
	{ID: "C91", Section: "E", Title: "Driver bug: back-to-back replays scramble", Threads: []string{"pytorch/pytorch/pull/57556", "pytorch/pytorch/pull/61063"}, LeftOut: "not planted: a fault of old drivers"},
	{ID: "C92", Section: "E", Title: "Driver build fails and poisons the context", Threads: []string{"paiml/realizar/issues/197", "paiml/realizar/pull/164"}, LeftOut: "not planted: a fault of a driver"},
	{ID: "C94", Section: "E", Title: "Optional kernels change the captured path", Threads: []string{"LibreYOLO/libreyolo/pull/714"}, LeftOut: "the machine: kernels that an installed package chooses; the profile has none of them"},
	{ID: "C96", Section: "E", Title: "Profiler or counters see nothing", Threads: []string{"LibreYOLO/libreyolo/pull/739"}, LeftOut: "not planted: counters of a profiler; nothing here believes them"},

	// F: control flow, shapes, keys, engagement, failure handling
	{ID: "C97", Section: "F", Title: "Data-dependent size or host read in forward", Threads: []string{"LibreYOLO/libreyolo/pull/714", "pytorch/pytorch/issues/124506", "ultralytics/ultralytics/pull/21975"}, Plants: []Plant{
		{Family: "c97-number", Verdict: result.Refused, Reasons: []gate.Reason{"DYNAMIC_OPERATION"}},
		{Family: "c97-mask", Verdict: result.Refused, Reasons: []gate.Reason{"DYNAMIC_OPERATION"}},
		{Family: "c97-branch", Verdict: result.Refused, Reasons: []gate.Reason{"DYNAMIC_OPERATION"}},
		{Family: "c97-nonzero", Verdict: result.Refused, Reasons: []gate.Reason{"DYNAMIC_OPERATION"}},
		{Family: "c97-list", Verdict: result.Refused, Reasons: []gate.Reason{"DYNAMIC_OPERATION"}},
		{Family: "c97-numpy", Verdict: result.Refused, Reasons: []gate.Reason{"DYNAMIC_OPERATION"}},
		{Family: "c97-made-tensor", Verdict: result.Refused, Reasons: []gate.Reason{"UNSEEN_WORK"}},
		{Family: "c97-unwatched", Verdict: result.Refused, Reasons: []gate.Reason{"UNSEEN_WORK"}},
		{Family: "c97-dlpack", Verdict: result.Refused, Reasons: []gate.Reason{"DYNAMIC_OPERATION"}},
	}},
	{ID: "C99", Section: "F", Title: "Same pointer, different source shape", Threads: []string{"ikawrakow/ik_llama.cpp/pull/2096"}, Plants: []Plant{
		{Family: "c99-growing-view", Verdict: result.Refused, Reasons: []gate.Reason{"RECORDING_CHANGES_WITH_STEP"}},
	}},
	{ID: "C101", Section: "F", Title: "Partial batch, multi-scale", Threads: []string{"LibreYOLO/libreyolo/pull/716", "roboflow/rf-detr/pull/1468", "NVIDIA/TensorRT/issues/3798"}, Plants: []Plant{
		{Family: "c101-first-size", Verdict: result.Differs, Reasons: []gate.Reason{"SHAPE_DIFFERS"}, NeedsGPU: true},
	}},
	{ID: "C102", Section: "F", Title: "Constants built lazily inside capture", Threads: []string{"huggingface/transformers/pull/48199", "LibreYOLO/libreyolo/pull/682"}, Plants: []Plant{
		{Family: "c102-lazy-constant", Verdict: result.Refused, Reasons: []gate.Reason{"LAZY_BUFFER_IN_POOL"}, NeedsGPU: true},
	}},
	{ID: "C104", Section: "F", Title: "Scalar-compare schedule on device", Threads: []string{"LibreYOLO/libreyolo/pull/714", "LibreYOLO/libreyolo/pull/645"}, Plants: []Plant{
		{Family: "c104-device-schedule", Verdict: result.Refused, Reasons: []gate.Reason{"DYNAMIC_OPERATION"}, NeedsGPU: true},
		{Family: "c104-host-index", Verdict: result.Refused, Reasons: []gate.Reason{"H2D_IN_REGION"}, NeedsGPU: true},
	}},
	{ID: "C106", Section: "F", Title: "Flag accepted, capture never engaged", Threads: []string{"LibreYOLO/libreyolo/pull/716", "Lightning-AI/lightning-thunder/issues/347", "pytorch/pytorch/pull/193044", "kekzl/imp/pull/1709"}, Plants: []Plant{
		{Family: "c106-never-captured", Verdict: result.Refused, Reasons: []gate.Reason{"CAPTURE_FAILED"}, NeedsGPU: true},
	}},
	{ID: "C107", Section: "F", Title: "Re-capture impossible", Threads: []string{"LibreYOLO/libreyolo/pull/716"}, Plants: []Plant{
		{Family: "c107-captured-once", Verdict: result.Refused, Reasons: []gate.Reason{"RECAPTURE_FAILED"}, NeedsGPU: true},
	}},
	{ID: "C109", Section: "F", Title: "Failed capture poisons the process", Threads: []string{"LibreYOLO/libreyolo/pull/714", "NVIDIA/warp/issues/1957"}, LeftOut: "the arm: a capture that fails and leaves something behind; FAIL makes one fail"},
	{ID: "C111", Section: "F", Title: "Launching a graph inside someone else's capture", Threads: []string{"microsoft/onnxruntime/pull/32081"}, Plants: []Plant{
		{Family: "c111-own-graph", Verdict: result.Refused, Reasons: []gate.Reason{"UNSEEN_WORK"}, NeedsGPU: true},
	}},
	{ID: "C112", Section: "F", Title: "Hooks and dumpers do not run on replay", Threads: []string{"sgl-project/sglang/pull/38439", "NVIDIA/TransformerEngine/pull/2831", "pytorch/pytorch/pull/126914"}, Plants: []Plant{
		{Family: "c112-counting-hook", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
		{Family: "c112-piled-hooks", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
	}},
	{ID: "C114", Section: "F", Title: "Inference-mode mismatch", Threads: []string{"NVIDIA/Megatron-LM/pull/4425"}, Plants: []Plant{
		{Family: "c114-inference-constant", Verdict: result.Differs, Reasons: []gate.Reason{"MODE_NOT_KEYED"}, NeedsGPU: true},
		{Family: "c114-traces-of-modes", Verdict: result.Differs, Reasons: []gate.Reason{"MODE_NOT_KEYED"}, NeedsGPU: true},
	}},
	{ID: "C116", Section: "F", Title: "Metric metadata lost across replays", Threads: []string{"NVIDIA/Megatron-LM/issues/1494"}, Plants: []Plant{
		{Family: "c116-metric", Verdict: result.Refused, Reasons: []gate.Reason{"PY_SIDE_EFFECT"}},
		{Family: "c116-in-an-object", Verdict: result.Refused, Reasons: []gate.Reason{"UNRECORDABLE"}},
	}},
	{ID: "C117", Section: "F", Title: "Graph capture after checkpoint load", Threads: []string{"NVIDIA/Megatron-LM/issues/3871"}, LeftOut: "training: a checkpoint that is loaded before the capture; RESUME does it"},
	{ID: "C119", Section: "F", Title: "Gradient wrong in an unrolled loop", Threads: []string{"pytorch/pytorch/issues/106321", "pytorch/pytorch/issues/189150"}, LeftOut: "training: gradients of a loop"},
}
