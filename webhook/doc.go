// Command hostwarrant-webhook refuses, at kubectl apply, objects that nobody vouched for.
//
// "serve" answers the API server's admission reviews; every replica answers, none writes anything
// but its serving CA. "control" is the controller of the same product: leader-elected, it keeps the
// caBundle of the webhook configurations current and reports on the trust policy. The two run under
// service accounts of their own.
//
// This package wires; the rules are in internal/verify, the handlers in webhook/admit.
//
// Specification: docs/spec/admission.md.
package main
