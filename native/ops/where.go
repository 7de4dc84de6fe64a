package ops

import "samebits/bridge/recording"

func init() {
	register(lowerWhere, "aten::where.self")
}

func lowerWhere(b *Builder, op *recording.Operation) error {
	e := elementwise{file: "where", entry: "where", also: integers, masks: []int{0}}
	for _, name := range []string{"condition", "self", "other"} {
		v, err := ValueArg(op, name)
		if err != nil {
			return err
		}
		e.inputs = append(e.inputs, v)
	}
	var err error
	if e.out, err = Result(op, 0); err != nil {
		return err
	}
	e.common = b.Value(e.out).DType
	return e.emit(b, op)
}
