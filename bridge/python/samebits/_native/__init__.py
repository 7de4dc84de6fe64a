"""The extension that gopy makes of the Go package samebits/bridge/python. Only samebits._calls imports it."""
