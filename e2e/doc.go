// Package e2e holds the end-to-end tests: a real API server, the product installed from its
// manifests, its programs running under their own service accounts, and kubectl as users have it.
//
// See docs/development/lab.md for what runs underneath.
package e2e
