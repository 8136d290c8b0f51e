// Package canary proves that the webhook is in the path: it writes, as a dry run, what the webhook
// always refuses, and believes that it is asked only where that very refusal comes back.
//
// A canary is sent for every guarded kind, in every version that is served, to every API server. It is
// named by a nonce that nobody can know before, and a refusal counts only in our webhook's name, for
// that object, with that nonce. Canaries are written as a ServiceAccount of their own that can create
// these kinds and do nothing else. UPDATE and DELETE are rules of the same webhooks: that the live
// configuration has them is compared with what is shipped (internal/drift).
//
// The threat it stops: a webhook that is believed to guard, and is not asked: a configuration that was
// deleted or narrowed, an API server that was started without it, a version that nobody listed.
//
// Specification: docs/spec/canary.md.
package canary
