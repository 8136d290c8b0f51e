package main

import (
	"encoding/pem"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/fragment/policyfile"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
)

// signPolicyFile signs the policy of a file as kubescape's sign-policy does.
func (c *cli) signPolicyFile(f *policyfile.File, key ssh.Signer) error {
	k, err := c.newFragmentKey(key)
	if err != nil {
		return err
	}
	digest, err := f.Policy.Digest()
	if err != nil {
		return err
	}
	signed, err := k.sign(digest)
	if err != nil {
		return err
	}
	f.Annotations = signature.Annotations(k.certificate, signed, k.at)
	return f.Verify(k.signer.public)
}

// isPEM tells a PEM public key from a policy file.
func isPEM(text []byte) bool {
	block, _ := pem.Decode(text)
	return block != nil && block.Type == "PUBLIC KEY"
}

// demoKey is the fingerprint, in kubescape's form, of the root key whose private half is published.
const demoKey = "key:d0cc7f2e82d99699d7a5f7078a9f30ec4847d13b6e41e91e224e0a47b32b9f9e"

// documentTime is a time as a policy document has it.
func documentTime(t time.Time) string { return `"` + stamp(t) + `"` }
