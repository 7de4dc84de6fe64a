package explain

import "samebits/parity/gate"

// Cause is what stands behind a reason id.
type Cause struct {
	Saw     string   // what the gate saw, in general
	Usually []string // what usually causes it, the likeliest first
	Look    string   // what to do next
}

// causes has an entry for each reason of package gate.
var causes = map[gate.Reason]Cause{
	gate.RecordingChangesWithInput: {
		"The step was recorded with two inputs, and the lists of operations are not the same.",
		[]string{"Python code looks at numbers in a tensor and takes another branch: `.item()`, `if x.max() > …`, `nonzero`, boolean masks, a count of detections that becomes a shape.",
			"A number that was read out of a tensor became an argument of an operation. A graph would keep the first one."},
		"The finding names the first operation that is another one, with its module and line. Either the branch goes behind a seam, or the number becomes a key of the recording."},
	gate.RecordingChangesWithStep: {
		"The same input was recorded at two steps of one process, and the lists of operations are not the same.",
		[]string{"The module counts its own calls, or does something the first time only: lazy buffers, cached grids and anchors, a first-step branch of an optimizer.",
			"A Python number changes from step to step (a step counter, a bias correction, a schedule) and is passed by value: a graph freezes it.",
			"Memory that is made once lies elsewhere or has other strides the second time."},
		"Compare the two lists by `parity record` and `parity diff`. What is done once must be done before the capture; what changes must live in a tensor."},
	gate.EagerNoise: {
		"Eager PyTorch gave other bits in a second process, with the same weights and inputs.",
		[]string{"An operation adds by atomics in whatever order threads come: scatter_add, index_add, gradients of indexing, of upsampling and of grid_sample.",
			"A random generator is used that is not seeded: dropout that is still on, noise in the forward.",
			"Memory is read that nobody wrote: `torch.empty` that is used before it is filled.",
			"A library chooses among kernels by measuring (cuDNN's benchmark mode) or by how much memory is free."},
		"No arm can be blamed until eager is quiet. Run the cell again with another seed, and look which outputs differ: the others are clean."},
	gate.StateMoved: {
		"The same input came twice to one process and gave other bits the second time.",
		[]string{"A forward changes a buffer: batch norm in train mode, a moving average, a queue, a cache of keys and values.",
			"The generator of random numbers moves on.",
			"An output is a view of memory that the next step writes again."},
		"Put the module into eval mode, or make the state an input of the step."},
	gate.InputNotSeen: {
		"Two inputs gave the same bits in every output: from these outputs nobody could tell a stale graph from a right one.",
		[]string{"The outputs that are compared do not depend on the images: constants, anchors, empty detections because every score is below the threshold.",
			"Activations are saturated or dead, so that everything is zero; fresh weights often are.",
			"The input is copied somewhere else than the model reads it."},
		"Look at the digests of the outputs by probe. Season the weights, or return what lies before the threshold."},
	gate.NotCaptured: {
		"The arm has no graph after it was asked to capture one.",
		[]string{"Something in the step is not allowed while a stream is captured: a synchronisation, a copy from pageable memory, cudaMalloc outside of the graph's pool.",
			"A library made its handle or workspace for the first time during the capture.",
			"Another thread used the device meanwhile, in the global capture mode."},
		"Run with --verbose: the plugin writes what CUDA said. Warm up on the stream that captures."},
	gate.FellBack: {
		"A step ran eagerly although a graph was asked for: the arm fell back without failing.",
		[]string{"The capture failed, and the code that called it went on without it, as it was told to for other shapes or devices.",
			"The key of the step (shape, dtype, device) is not one that a graph was captured for.",
			"The cache of graphs was full."},
		"The detail has the arm's own reason. Bits that come from a fallback prove nothing about a graph."},
	gate.NotReplayed: {
		"There is a graph, and the number of its replays is not that of the steps.",
		[]string{"The arm says that it captured, and runs eagerly all the same: a wrapper that is bypassed, a latch after an error.",
			"A step replays twice, or a replay covers several steps."},
		"Compare `replays` and `eager_steps` among the figures with the number of steps."},
	gate.CapturedAgain: {
		"A new graph was captured between replays.",
		[]string{"The cache of graphs does not recognise the step: its key has an address, an object's identity or a number that changes.",
			"A guard of a compiler failed and the code was compiled anew.",
			"Parameters were replaced, so that the old graph was rightly thrown away; then they must not be."},
		"Print the key of each step. A capture in the middle of a run also hides what a stale graph would have done."},
	gate.NotLaunched: {
		"The replays sent fewer nodes to the device than there were steps: they did nothing.",
		[]string{"The graph is empty: the work was on another stream than the captured one, on another device, or on the CPU.",
			"The region that is captured makes views alone."},
		"Look at the number of nodes among the figures, and at the stream on which the step runs."},
	gate.Synchronised: {
		"The host waited for the device inside of a step.",
		[]string{"`.item()`, `.cpu()`, `bool(tensor)`, printing a tensor, or a copy to pageable memory.",
			"An operation whose result's size depends on numbers (nonzero, unique, masks).",
			"An allocation had to free memory first."},
		"The operation that reads belongs behind the seam, or before the graph as a key."},
	gate.OutputDiffers: {
		"A replay gave other bits than the same arm's eager step, at the same input.",
		[]string{"A number that lives on the host was frozen at capture: a step counter, a learning rate, a length, a scale.",
			"The graph reads memory that was freed and given to somebody else: a temporary from before the capture, a workspace that a later capture made larger.",
			"The graph reads an old address: parameters were moved, replaced or cast after the capture.",
			"Random numbers: the generator was not registered with the graph, so that every replay draws the same ones.",
			"While capturing, the library chose another kernel than eagerly."},
		"See which replay differs first. Right at first and wrong later speaks for memory, wrong from the second on for a frozen number, wrong from the first on for another kernel or another address."},
	gate.OutputNotWritten: {
		"The poison that was written over an output before the replay was still there after it.",
		[]string{"The replay writes to another place than the one that is read: the output was copied or moved once, at capture.",
			"The copy of the output is not part of the graph and was done at capture only.",
			"A kernel leaves elements out: a mask, a bound, an early exit."},
		"If all of the output is poison it is a wrong address; if a part of it is, look at the kernel that writes it last."},
	gate.OutputOverwritten: {
		"A result that was held changed when the next step ran.",
		[]string{"The arm returns the graph's own memory, and no copy: every replay writes it again.",
			"`detach()` or a view hides that it is the graph's memory.",
			"Two outputs, or two graphs of one pool, share memory."},
		"Clone outputs before they are returned, or say that they are views and hold until the next step."},
	gate.OutputsOfOtherShape: {
		"An arm gives other names, types or shapes than eager PyTorch.",
		[]string{"The number of results depends on the input (detections after a threshold).",
			"Names are made from dictionaries whose order or keys changed.",
			"A dtype is another one: autocast was on in one arm and off in the other."},
		"Compare the lists of outputs; nothing else can be compared before they agree."},
	gate.TooFewReplays: {
		"A probe was replayed fewer than five times. Two calls prove little: warm-up, capture and first replay each follow rules of their own.",
		[]string{"The run broke off.", "Training has fewer steps than the gate needs."},
		"Give the run more steps, and look among the problems for what ended it."},
	gate.StaleOutput: {
		"A replay gave exactly what eager gives for another input.",
		[]string{"The input of the graph is not refreshed: the new tensor was bound to the Python name and not copied into the captured one.",
			"The copy of the input runs on another stream, after the replay has read it.",
			"The output is a buffer that an earlier replay filled.",
			"With several shapes or keys: the wrong graph was replayed."},
		"See whose output it is: the probe before speaks for a copy that comes too late, the probe of the capture for a copy that never happens."},
	gate.NativeDiffers: {
		"The native engine gives other bits than eager PyTorch.",
		[]string{"An operation rounds at other places: another order of a sum, a fused multiply-add, a product that is kept in a wider type, another formula of a transcendental.",
			"The library was asked otherwise: another algorithm of cuDNN, another workspace, math type or alignment for cuBLAS.",
			"Operations were put together which PyTorch runs one by one, and an intermediate result is not rounded.",
			"Strides or offsets are read wrongly: then the differences are large, and many."},
		"`parity bisect` keeps the operation with both operands; `parity ops` compares it on other values; `parity reduce` makes the smallest recording that still differs."},
	gate.RoundingWorse: {
		"On the host, native's error against double precision is more than four times PyTorch's own.",
		[]string{"An accumulator is narrower than it should be.", "A formula cancels: a variance as a difference of squares, a softmax without its maximum.",
			"An index or a stride is wrong: then the error is as large as the numbers themselves."},
		"`parity reduce --device host` finds the operations; `parity ops --device host` looks at each by itself."},
	gate.StateDiffers: {
		"After a step of training a tensor of a graph arm has other bits than eager's.",
		[]string{"Warm-up steps before the capture moved something that was not put back: statistics of batch norm, momentum, a counter.",
			"A branch of the first step (momentum that is made, a flag) is repeated by every replay.",
			"A bias correction or schedule was frozen as a number.",
			"The moving average or the gradients' zeroing lies outside of the graph and does not happen in replays.",
			"A gradient is None in one arm and zeros in the other: weight decay then moves the parameter."},
		"The finding lists the tensors in the order in which a step makes them: the first one is where to look. Buffers first speak for warm-up, gradients for the step, momentum or parameters for the optimizer, averages alone for the update that was left out."},
	gate.OtherTensors: {
		"One side has a tensor that the other lacks, or has it in another shape.",
		[]string{"Gradients: None on one side (set_to_none) and a tensor on the other.", "A parameter without gradient got momentum all the same.",
			"Tied parameters are counted once on one side and twice on the other."},
		"The detail names the tensor and the side."},
	gate.HyperNotSeen: {
		"A hyperparameter makes no difference, not even to eager PyTorch: that a graph obeys it cannot be proved.",
		[]string{"It is zero, or multiplied by zero, for the whole run (a learning rate of zero in warm-up, momentum without a second step).",
			"The optimizer does not get it: another parameter group, or a copy of the number."},
		"Choose values that matter, or find where the number is dropped."},
	gate.HyperStale: {
		"The arm goes on with the first value of a hyperparameter, bit for bit.",
		[]string{"It is a Python number and became a kernel argument at capture; the scheduler changes the Python number alone.",
			"It is a tensor, and was replaced by another tensor instead of being written into."},
		"Keep it in a tensor on the device, and copy the new value into it before each replay."},
	gate.HyperDiffers: {
		"With changing hyperparameters the arm gives other bits than eager, and not those of a frozen one.",
		[]string{"The number is rounded on its way to the device (float32 where eager computes with a float64 scalar).",
			"A value of zero takes another path in eager: PyTorch leaves weight decay out.",
			"The new value arrives one step late."},
		"Compare the step that differs with the schedule: which hyperparameter changed there."},
	gate.ShortBatchDiffers: {
		"The step with a short batch gives other bits.",
		[]string{"The graph of the full batch was replayed with padding, and the padding counts in a mean or in batch norm.",
			"The short batch left old images in the rest of the buffer.", "Another kernel is chosen for the other size."},
		"A short batch needs a graph of its own, or runs eagerly."},
	gate.AfterShortBatch: {
		"A step with a full batch has other bits after a short one came in between.",
		[]string{"Both graphs share a workspace, a pool or gradients, and the second capture moved what the first one reads.",
			"The eager step replaced gradients or buffers: the graph goes on writing the old ones."},
		"Warm up all shapes before any capture, and go back to the first graph afterwards."},
	gate.ResumeDiffers: {
		"A run that was stopped and resumed from its checkpoint has other bits than the uninterrupted one.",
		[]string{"The checkpoint lacks something: momentum, the average's counter, the scaler, a generator's state, buffers that are not saved.",
			"A first-step branch runs again after the resume.",
			"A tensor is saved in another precision than it has."},
		"If the checkpoint itself differs from the state the detail says so; otherwise look at what the first step after the resume does."},
	gate.CheckpointNotExchanged: {
		"A checkpoint of one side does not continue as the same run on the other.",
		[]string{"Names or layouts differ, and something was left at its first value.", "Momentum is kept in another form (scaled, shifted by a step)."},
		"Compare both checkpoints tensor by tensor: they are safetensors files (--keep)."},
	gate.SeamDiffers: {
		"Behind the segment, the family's own code gives other bits than its whole forward.",
		[]string{"The cut goes through something that has more than the tensors: a cache, a mask, an attribute that the segment leaves on the module.",
			"The rest draws random numbers, and the segment moved the generator.",
			"A tensor loses its strides at the seam, and a kernel behind it is chosen by them."},
		"See whether eager's own segment differs, too: then the seam is at the wrong place; if native's alone does, NATIVE says where."},
	gate.ShapeDiffers: {
		"A step has other bits when steps of another shape or key ran in between.",
		[]string{"Graphs share a workspace that a later capture made larger: the earlier graph has the old address.",
			"A position table, grid or mask is kept on the module and belongs to the shape that came last.",
			"A pool was given back when another graph was released."},
		"Capture all shapes, then return to the first. If it is wrong only after the return, it is memory that both share."},
	gate.KeyIgnored: {
		"A key without a graph was replayed: the arm gave an answer for another key.",
		[]string{"The key is no part of what graphs are looked up by: equal numbers of elements, strides, dtype or a number on the host was not looked at."},
		"Look the graph up by everything that the recording lists as a key, and refuse or run eagerly otherwise."},
	gate.EmptyGraph: {
		"The captured graph has no kernel: its replays do nothing.",
		[]string{"The work ran on another stream than the captured one: a launcher that keeps the stream of its first call, a library that was not told the stream.",
			"A library refused to run while capturing and its status was not looked at; the warm-up had filled the outputs already.",
			"The region makes views alone."},
		"Look at the kinds among the figures, and at whoever launches without asking for the current stream."},
	gate.AllocInRegion: {
		"The graph allocates or frees memory in itself.",
		[]string{"An extension calls cudaMallocAsync for a temporary, instead of PyTorch's allocator, which gives memory of the graph's pool.",
			"A library makes its workspace at every call."},
		"What such a node hands out may be somebody else's at the next replay. Allocate before the capture, or through the pool."},
	gate.UploadInRegion: {
		"The graph copies from host memory: every replay reads that address again.",
		[]string{"`torch.tensor(…)`, `.to(device, non_blocking=True)` or an index of Python numbers in the forward, from pinned memory.",
			"A kernel that takes an array of pointers, which is uploaded at each call."},
		"The host's block may be freed and reused, and a number in it is that of the capture. Make it a buffer on the device before the capture."},
	gate.FetchInRegion: {
		"The graph copies to host memory: every replay writes that address.",
		[]string{"`.to('cpu', non_blocking=True)` in the forward, to log or to return something."},
		"Return the tensor, and copy it after the replay: the host's block belongs to somebody else by then."},
	gate.HostInRegion: {
		"The graph calls a function of the host at every replay.",
		[]string{"cudaLaunchHostFunc in an extension: progress, release of a resource, a collective's bookkeeping."},
		"The call runs with the arguments of the capture, and holds up the stream. Take it out of the region."},
	gate.OffStreamWork: {
		"The graph has fewer kernels than the recording has convolutions and matrix products: some of them are not in it.",
		[]string{"An operation runs on a stream of its own, or on the default one, and was done once, at capture.",
			"Autograd or a library remembers the stream of the warm-up."},
		"Compare the names of kernels of an eager step and of a replay in a profile. What is missing gives old results."},
	gate.StaleStream: {
		"On another stream than that of the capture a step has other bits.",
		[]string{"Inputs are copied on the current stream, and the replay does not wait for that: it reads those of the step before, or half of them.",
			"Outputs are read before the replay has ended, because somebody waits for the wrong stream.",
			"A kernel is launched on the stream of the capture, or on stream 0, which has no order with streams that do not block."},
		"Replay on the stream that is current, and make it wait (an event) for whoever writes inputs. A wait in between hides it."},
	gate.ThreadUnsafeCapture: {
		"A graph that was captured in a thread of its own, while another one used the device, gives other bits.",
		[]string{"Work of the other thread got into the capture, or it was captured in a mode that does not see it (relaxed).",
			"What was captured belongs to the thread: handles, workspaces, the current device or stream, and went with it."},
		"Capture with the mode thread_local, on a stream that nobody else has; keep handles and workspaces with the graph."},
	gate.PointerMoved: {
		"Parameters and buffers moved to other addresses, and a step has other bits: a replay still reads the old ones.",
		[]string{"Graphs are looked up by shape, dtype and device alone, and `.to()`, `.half()`, `.data = …`, a swap of averaged weights or `load_state_dict(assign=True)` moved the weights.",
			"Addresses are compared, and the allocator gave an old address to a new tensor.",
			"Something was derived from the weights once (a fused, packed or cast copy) and kept."},
		"Drop graphs when the storage of anything that they read changes, not its address alone. Old memory often still holds the right numbers: that is why it is overwritten here."},
	gate.ModelMutated: {
		"Weights changed in place, and a step goes on as if they had not, or has other bits than eager.",
		[]string{"A cast or folded copy of the weights was made before or at the capture: autocast's cache, batch norm folded into a convolution, packed weights, work on weights alone that is done once.",
			"The graph holds constants that were computed from weights."},
		"If the bits are those of before, look for what is cached. Compute it in the graph, or drop it with the graph when weights change."},
	gate.UpdateNotSeen: {
		"All weights were halved, and eager gave the same bits: whether a graph reads the weights cannot be seen.",
		[]string{"The outputs do not depend on the weights that the recording lists: another copy of them is read.",
			"Every output is saturated, or normalised so that the size of the weights does not matter."},
		"Look which parameters the step really reads, and give outputs that depend on them."},
	gate.ModeNotKeyed: {
		"After a change of modes (train and eval; grad, no_grad, inference_mode; the graph off and on) a step has other bits.",
		[]string{"A step in train mode moved the statistics of batch norm, or switched dropout on, and nothing put it back.",
			"A graph that was captured in one mode is replayed in another.",
			"A flag of the module (`training`, `export`, `deploy`) is read at capture alone."},
		"The mode belongs to what graphs are looked up by; a change of it drops graphs or picks another one."},
	gate.RNGNotReplayed: {
		"Steps after a seed draw what the step before drew, where eager draws anew.",
		[]string{"The generator is not registered with the graph, so that its offset at capture is that of every replay.",
			"The mask was drawn before the capture, or at capture alone."},
		"Register every generator that the step uses with the graph before the capture."},
	gate.RNGStreamDiffers: {
		"After a seed, a step or the generator is not what it is in eager.",
		[]string{"The seed is read at capture alone: `manual_seed` afterwards changes nothing.",
			"A replay moves the generator by another amount than the eager step, or not at all.",
			"Warm-up steps drew numbers and the generator was not put back.",
			"Another generator is drawn from, or the numbers are drawn in another order."},
		"Compare the state of the generator after each step. Right at the first step after a seed and wrong later speaks for the offset, wrong at once for the seed."},
	gate.CaptureSurvived: {
		"A capture was to fail in its midst, and no step fell back: what follows a failure could not be looked at.",
		[]string{"The arm captures lazily, later than at the next step.", "Failures are swallowed: the error of the capture is not looked at and a part of a graph is used.",
			"Fallbacks are not counted."},
		"Look at the counters among the figures."},
	gate.ContextPoisoned: {
		"After a capture that failed, the eager step is refused or has other bits.",
		[]string{"The stream or the generator was left in the state of a capture.", "The failed capture had written state: inputs, buffers, a cache that belongs to its pool.",
			"An error of CUDA stays in the context, and every later call reports it."},
		"End the capture in any case, drop its pool, and take a real step only then. If the context is lost the process has to be."},
	gate.NotLatched: {
		"After a capture failed another one was tried at once.",
		[]string{"The failure is not remembered, or not for this key: every step pays for a capture that fails again."},
		"Remember the failure until graphs are released on purpose, and say it once."},
	gate.RecaptureFailed: {
		"After graphs were released there is no graph again, or it gives other bits.",
		[]string{"The wrapper replaced the module's forward and does not undo it: the second capture captures the first graph, or nothing.",
			"The latch of a failed capture is never opened.", "The pool, a handle or static inputs went with the old graph."},
		"Capture, release and capture again in one process, and look at `captures` and `replays` among the figures."},
	gate.MemoryGrowth: {
		"More memory of the device is held after replays, or after another capture, than before.",
		[]string{"A graph that was released, or a capture that failed, keeps its pool.",
			"Each capture runs on a stream of its own, for which libraries make a workspace that they keep.",
			"Outputs that were handed out are kept by somebody, or a copy is made at each step and put into a list.",
			"The graph allocates in itself."},
		"Growth over replays is a leak of steps; growth over a capture alone is one of captures. Look at both numbers, held and reserved."},
	gate.WrongDevice: {
		"With another device current in the calling thread a step has other bits.",
		[]string{"A kernel, an allocation or a library's handle goes to the current device instead of the tensors' own.",
			"A stream of one device was used while another was current."},
		"Make the device of the step current around every capture, replay and eager step, and put the caller's back."},
	gate.ProcessDiffers: {
		"Fresh processes of the cell gave other bits, with the same weights and inputs.",
		[]string{"A kernel is chosen by measuring, or by how much memory was free when the process started.",
			"Addresses have another alignment in another process, and a kernel is chosen by it.", "Memory is read that nobody wrote.",
			"The order of a set or of a dictionary with hashed keys decides."},
		"Pin the choice. One process proves nothing of the next one."},
	gate.ColdDiffers: {
		"A process that had to compile all its kernels gave other bits than those that found them.",
		[]string{"The kept kernels were made by another compiler, or from another text, under the same name.",
			"Something is compiled or loaded lazily inside of the capture, and another kernel is taken meanwhile."},
		"Delete the cache (SAMEBITS_CACHE) and verify again. If that changes the result, the cache's key lacks something."},
	gate.TooFewProcesses: {
		"Fewer fresh processes ran than must agree, or none of them had a cold cache of kernels.",
		[]string{"The run broke off."},
		"See among the problems what ended it."},
	gate.SituationFailed: {
		"An arm did not get into a situation, or could not step in it, and gave no reason of its own.",
		[]string{"An exception in the plugin; its log has the traceback."},
		"Run the gate alone with --verbose: `parity verify FAMILY --gate ID`."},
	gate.NotApplicable: {
		"The gate was not judged: the arm does not know the situation, or cannot show what the gate looks at.",
		[]string{"The plugin is older than the gate, or has nothing of the kind: an engine without a generator has no seed.",
			"On the host nobody counts memory."},
		"A certificate needs it all the same; docs/certificates.md says what may be missing."},
	gate.NoSecondDevice: {
		"The gate was not judged: no other device could be made current.",
		[]string{"The machine has one GPU, or CUDA_VISIBLE_DEVICES shows one."},
		"Verify on a machine with two, if the family is to run there."},
	gate.NotAsked: {
		"The gate was not judged: others were asked for alone.",
		[]string{"--gate names them."},
		"Leave --gate out."},
	gate.NoGPU: {
		"The gate was not judged: PyTorch captures graphs on a GPU only.",
		[]string{"The cell ran on the device host."},
		"`parity doctor` says why there is no GPU."},
	gate.NotReached: {
		"The gate was not judged: one before it failed, or the run broke off.",
		[]string{"See the gate that failed, or the problems."},
		"Mend the first failure and verify again."},
}

// breakdowns are reasons of problems that no gate has: what plugins and hosts refuse or die of.
var breakdowns = map[string]Cause{
	"UNKNOWN_OPERATION": {"A recording has an operation that the plugin does not know.", []string{"The native engine has no lowering of it.", "It is registered by a package that is not imported."},
		"`parity ops RECORDING` lists all of them."},
	"UNSUPPORTED": {"The plugin knows the operation, and not in this form.", []string{"A dtype, layout or option that no recording had so far."}, "`parity ops RECORDING` shows the signature."},
	"OTHER_TORCH": {"The recording is of another version of PyTorch than the one whose arithmetic the native engine follows.",
		[]string{"The interpreter has another PyTorch than requirements.lock names, or the recording is from another machine."},
		"`parity doctor` names the version. Record the family again with the one that the problem asks for."},
	"OUT_OF_MEMORY": {"The device or the machine had no memory left.", []string{"Other cells or programs were on the same GPU.", "The batch is too large.",
		"PyTorch caught an allocation that failed, and took another algorithm of cuDNN's, whose bits may be others."},
		"Verify it with --jobs 1, or a smaller --batch. It says nothing of the family."},
	"PLUGIN_CRASHED": {"A plugin ended by itself.", []string{"A CUDA error that poisons the context, a failed assertion of a library, a crash in an extension, the kernel's out-of-memory killer."},
		"Its last lines are in the detail; --verbose shows all of them."},
	"PLUGIN_HUNG":     {"A plugin did not answer in time and was killed.", []string{"A kernel that never ends, a deadlock with a stream that is captured, a machine that is too busy."}, "Try a longer --timeout once."},
	"PLUGIN_MISSING":  {"A plugin's program is not there.", []string{"It was not built, or lies elsewhere."}, "`parity doctor` says where it is looked for."},
	"PLUGIN_DESCRIBE": {"A plugin started and could not say what it is.", []string{"An import failed: another interpreter, a package that is missing."}, "`parity doctor`, and --verbose."},
	"HOST_CONSTANT":   {"The weights differ in a tensor that the host read while the step was recorded.", []string{"The recording belongs to other weights."}, "Record again with these weights."},
	"UNKNOWN_FAMILY":  {"The reference plugin cannot build that family.", []string{"A spelling, or a package that is missing."}, "`parity list` has the names."},
	"DYNAMIC_OPERATION": {"The host reads data that an input reaches, or sizes depend on data.", []string{"`.item()`, `if tensor:`, `tolist`, `numpy`, `nonzero`, a boolean mask.", "On a GPU any read of memory of the device."},
		"The problem names operation, module and line. Keep the number on the device (`torch.where`, `topk`), or cut the step before it."},
	"RANDOM_OPERATION":    {"An operation draws random numbers.", []string{"Dropout or noise that is still on while it predicts."}, "Put the module into eval mode, or draw once and keep the numbers."},
	"RNG_STATE_IN_REGION": {"The step moves or seeds a generator, and a replay would not.", []string{"`manual_seed` in a forward, a generator saved and restored, `random` or numpy on the host."}, "Seed and draw outside of the step."},
	"WRITES_STATE": {"The step writes a parameter, a buffer or a constant.", []string{"Batch norm in train mode, a moving average, a counter on the device.", "Results that are written to memory the module keeps.", "A kernel that does not say what it writes."},
		"Put the module into eval mode; give results memory of their own."},
	"INPUT_MUTATED":        {"The step writes its input.", []string{"`images.div_(255)` and the like."}, "Write to a copy: a caller's tensor would change in eager steps alone."},
	"UNINITIALISED_MEMORY": {"Outputs depend on memory that was never written.", []string{"`torch.empty` that is read, or written in part."}, "The problem names the lines that make such memory."},
	"PY_SIDE_EFFECT": {"Every step changes what Python holds of the family, and a replay does not.", []string{"A tensor or a metric that is kept on the module, a list of results, a counter, a hook that counts."},
		"Return it as an output, or do it outside of the step. The problem names the attribute."},
	"BUFFER_REPLACED_IN_REGION":  {"Every step makes a parameter or buffer anew.", []string{"`self.scale = self.scale * x` in place of an operation in place."}, "A graph would go on with the old one. Leave it where it is."},
	"UNSEEN_WORK":                {"Work of the step is not in its recording: an operation ran where no recorder sees it, or a constant has other bits in the next step.", []string{"Work in another thread, a graph of the family's own, memory that is written by hand.", "A number of another tensor in `torch.tensor([...])`, `repr` of a tensor."}, "Run it as operations in the step's own thread."},
	"OUTSIDE_WORLD":              {"The step looks at the clock, a file or a socket, and a replay does not.", []string{"A time limit, a switch or a configuration that is read anew in each step."}, "Read it before, and keep it: the problem names the lines."},
	"CAPTURE_DEPENDENT_DISPATCH": {"The step asks whether it is captured, and is then another one.", []string{"A kernel that is chosen for captures, a check that is left out, a result of before that is returned."}, "The problem names the line that asks. Both ways must have the same operations."},
	"UNJOINED_STREAM":            {"A stream of the step's own is not waited for at its end.", []string{"`wait_stream` into a side stream, and none back."}, "Let the current stream wait for it."},
	"LAZY_BUFFER_IN_POOL":        {"Something is made for the first time while the step is captured.", []string{"A cache whose key knows of the capture or its stream."}, "It would lie in memory that replays write over. Make it before."},
	"CAPTURE_FAILED":             {"PyTorch cannot capture the step.", []string{"A synchronisation, a copy from pageable memory, or an exception of the family's own."}, "PyTorch's words are in the problem; --verbose shows the traceback."},
	"INTERRUPTED":                {"The run was interrupted.", []string{"Ctrl-C, SIGTERM."}, "Run it again; with --resume finished cells stay."},
}
