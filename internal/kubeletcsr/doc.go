// Package kubeletcsr says whether a certificate request is the one that a kubelet of
// one name makes with one bootstrap token, and for which key.
//
// Kubernetes' own approver asks less: it takes any name below system:node:, from
// whoever holds a token. Here the request must be nothing but what the kubelet of
// that node makes: the name, the organisation, the usages, a key that may vouch,
// and not one field more.
//
// It looks at bytes alone. Whose the token is, and whether the key is that host's
// kubelet's, its caller knows: docs/spec/join.md, Approval.
package kubeletcsr
