// Command hostwarrant makes keys, signs phase scripts and trust policies, and says offline what the
// cluster would say about an object.
//
// It runs on the signer's machine, never touches the network (but for the socket of ssh-agent), and
// holds no rule of its own: what is refused, and in which words, is decided by the trust core that the
// webhook and the relay use too. It must not import any Kubernetes code.
//
// The threat it stops: a signature over bytes that are not the bytes people looked at, or that the
// cluster would read otherwise. After signing it reads its own output as the API server would, and
// writes nothing that does not verify.
//
// Commands and exit codes: docs/cli.md. Formats: docs/spec/sshsig.md, docs/spec/trust-policy.md.
package main
