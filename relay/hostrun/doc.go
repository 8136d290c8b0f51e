// Package hostrun is the controller for HostRun objects: it judges a run again
// with the same engine as the webhook, takes it to the host, and writes what came
// of it to the object's status.
//
// It makes no signature, writes no object but the status of HostRuns (and deletes
// those whose time is over), and never reads a Secret that an SSHHost of the same
// namespace does not name.
//
// The threats it stops: an object that was admitted under an older policy or past
// the webhook and would still run, a phase that runs twice because a connection
// or a relay broke, and a host that is not the one that was meant.
//
// Specification: docs/spec/relay.md.
package hostrun
