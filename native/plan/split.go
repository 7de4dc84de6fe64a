package plan

import "samebits/bridge/recording"

// split gives a recording in which the two gradients of a convolution are operations of their own: nothing but the
// optimizer waits for a weight's gradient, so that it may run beside what follows. Values and storages stay what they are.
func split(r *recording.Recording) *recording.Recording {
	out := *r
	out.Operations = make([]recording.Operation, 0, len(r.Operations))
	for i := range r.Operations {
		if data, filter, ok := gradients(&r.Operations[i]); ok {
			out.Operations = append(out.Operations, data, filter)
			continue
		}
		out.Operations = append(out.Operations, r.Operations[i])
	}
	return &out
}

// gradients splits one call of aten::convolution_backward that gives both gradients. A bias's gradient stays with the
// weight's.
func gradients(op *recording.Operation) (data, filter recording.Operation, ok bool) {
	if op.Name != "aten::convolution_backward" || len(op.Results) != 3 {
		return data, filter, false
	}
	mask := -1
	for i := range op.Arguments {
		if a := &op.Arguments[i]; a.Name == "output_mask" && a.Kind == recording.List && len(a.Items) == 3 {
			mask = i
		}
	}
	if mask < 0 || op.Results[0].Kind != recording.ValueOf || op.Results[1].Kind != recording.ValueOf {
		return data, filter, false
	}
	only := func(keep ...int) recording.Operation {
		part := *op
		part.Arguments = append([]recording.Argument(nil), op.Arguments...)
		items := append([]recording.Argument(nil), op.Arguments[mask].Items...)
		part.Results = append([]recording.Argument(nil), op.Results...)
		for i := range items {
			kept := false
			for _, k := range keep {
				kept = kept || k == i
			}
			if !kept {
				items[i].Bool = false
				part.Results[i] = recording.Argument{Name: op.Results[i].Name}
			}
		}
		part.Arguments[mask].Items = items
		return part
	}
	return only(0), only(1, 2), true
}
