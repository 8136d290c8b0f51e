// Package plugin holds the test that a real kubectl finds the CLI under its plugin name. It needs a
// kubectl in PATH (hack/with-control-plane puts one there) and no cluster.
package plugin
