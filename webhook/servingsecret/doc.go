// Package servingsecret says whose the Secret with the serving CA is, and keeps the self-managed CA
// from writing over one that somebody else brought.
//
// cert-manager's authority (pkg/server/tls/authority) makes a new CA whenever the Secret it is given
// does not hold one of its own kind, a certificate issued by somebody else for instance, and writes
// that over what stood there. The threat this stops: a CA or certificate of the operator's, lost
// because a name was mistyped or a mode forgotten, and served under another key from then on.
//
// Specification: docs/spec/admission.md.
package servingsecret
