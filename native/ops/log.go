package ops

func init() { unary("log", "aten::log", "aten::log_") }
