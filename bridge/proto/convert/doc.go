// Package convert turns messages of the wire into the plain types of bridge/arm and back. Wire types stop here: nothing
// but bridge/host and bridge/serve imports it, and neither shows them to its callers.
//
// Numbers from the other side are never trusted: those that do not fit become the largest that does, which no bounds
// check lets pass.
package convert
