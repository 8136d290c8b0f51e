// Package upstream holds this project against the wire of karpenter-provider-ssh, in
// both directions, on real hosts: our shim under what that project's controller sends
// (package client), and our relay and our signed scripts under a verifier that knows
// no warrant (standin/kpssh-shim). Both stand-ins were made from
// docs/spec/upstream.md alone.
//
// It also plays docs/operations/migration.md. No control plane is needed.
package upstream
