package page

import (
	"html/template"

	"samebits/bridge/arm"
)

// Series is how an arm is drawn: a colour and a shape of its own, so that colour is not needed to tell arms apart.
type Series struct {
	Arm   string
	Class string
	Shape template.HTMLAttr
}

// The shapes are paths around the origin, of about the same area.
var shapes = map[string]Series{
	arm.ReferenceEager:   {Class: "eager", Shape: `d="M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0"`},
	arm.ReferenceGraph:   {Class: "graph", Shape: `d="M-4.5,-4.5h9v9h-9z"`},
	arm.ReferenceCompile: {Class: "compile", Shape: `d="M0,-6L5.6,4.4H-5.6z"`},
	arm.NativeEager:      {Class: "native-eager", Shape: `d="M0,-6L6,0L0,6L-6,0z"`},
	arm.NativeGraph:      {Class: "native-graph", Shape: `d="M-2,-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z"`},
}

// SeriesOf is how an arm is drawn. One that is not known has neither colour nor shape.
func SeriesOf(name string) Series {
	s := shapes[name]
	s.Arm = name
	return s
}
