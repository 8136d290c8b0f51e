// Package client plays the controller of karpenter-provider-ssh on the wire: what
// it checks before it connects, what it sends, and what it makes of the answer. It
// was made from docs/spec/upstream.md alone and shares no code with this project,
// so that a fault of ours cannot hide on both sides of a connection.
//
// It is a test's stand-in and not that project's code. It does what the page says
// and no more: no retries, no objects, no tokens.
package client
