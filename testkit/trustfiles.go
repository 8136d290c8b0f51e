package testkit

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"
)

// SignerLine is a line of allowed_signers, and of a signers statement, for a signer scoped to everything.
// It verifies scripts with a warrant; with kpssh among the further principals, those without one too.
func SignerLine(s Signer, principals ...string) string {
	all := append([]string{"install@*", "join@*", "leave@*", "uninstall@*"}, principals...)
	return strings.Join(all, ",") + ` namespaces="kpssh" ` + s.Line
}

// RootSigners is a host's root_signers.
func RootSigners(roots ...Signer) string {
	var b strings.Builder
	for _, root := range roots {
		b.WriteString(`root namespaces="hostwarrant-statement" ` + root.Line + "\n")
	}
	return b.String()
}

// ClusterFile is a host's cluster: the one that it may join.
func ClusterFile(id, endpoint string, ca []byte) string {
	return fmt.Sprintf("id %s\nendpoint %s\nca-sha256 %x\n", id, endpoint, sha256.Sum256(ca))
}

// Settings is the shim.conf of a host of a class, whose signers expire at a time, with further lines.
func Settings(warrant, class, maxValidity string, signersExpire time.Time, more ...string) string {
	lines := append([]string{"warrant=" + warrant, "class=" + class, "max-validity=" + maxValidity, fmt.Sprintf("signers-expire=%d", signersExpire.Unix())}, more...)
	return strings.Join(lines, "\n") + "\n"
}

// Release is what is published with a release that holds this shim, by the name of the file.
func Release(t testing.TB, shim []byte) map[string]string {
	t.Helper()
	key := NewSigner(t, "ed25519")
	sums := fmt.Sprintf("%x  kpssh-shim\n", sha256.Sum256(shim))
	return map[string]string{
		"SHA256SUMS": sums, "SHA256SUMS.sig": Sign(t, key, "hostwarrant-release", []byte(sums)),
		"release.pub": `release namespaces="hostwarrant-release" ` + key.Line + "\n",
	}
}
