// Package guards looks whether what guards the cluster is as it was shipped: webhook configurations, and
// policies of the API server with their bindings (internal/drift compares them).
//
// It only tells. The controller looks too, and may patch the webhook configurations: the relay, under
// another account, is who notices when it is the controller that was taken over. What cannot be read is
// told like what differs: nothing is claimed that was not seen.
//
// Specification: docs/spec/relay.md, Guards.
package guards
