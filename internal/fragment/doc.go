// Package fragment reads and verifies the signed parts of a runtime profile in
// kubescape's format: ContainerProfile and Rules, and, experimental because no
// published artefact shows them, RuntimeRuleAlertBinding and SeccompProfile.
//
// It says what was signed and by which key, and nothing about whether that key may:
// policy is the business of internal/verify. It stops three threats: content that its
// signer did not sign; content that two readers take differently, which the format's
// own hash allows; and content of one kind or name on a carrier of another. The
// format, and where ours is stricter, stand in docs/spec/fragments.md.
package fragment
