package ops

func init() {
	for _, name := range []string{
		"aten::_reshape_alias",
		"aten::_unsafe_view",
		"aten::alias",
		"aten::as_strided",
		"aten::as_strided_",
		"aten::detach",
		"aten::diagonal",
		"aten::expand",
		"aten::lift_fresh",
		"aten::permute",
		"aten::select.int",
		"aten::slice.Tensor",
		"aten::split.Tensor",
		"aten::split_with_sizes",
		"aten::squeeze",
		"aten::squeeze.dim",
		"aten::squeeze.dims",
		"aten::t",
		"aten::transpose.int",
		"aten::unbind.int",
		"aten::unfold",
		"aten::unsqueeze",
		"aten::view",
	} {
		Register(Registration{Name: name, Class: View})
	}
	for _, name := range []string{
		"aten::empty.memory_format",
		"aten::empty_like",
		"aten::empty_strided",
		"aten::new_empty",
		"aten::new_empty_strided",
	} {
		Register(Registration{Name: name, Class: Create})
	}
}
