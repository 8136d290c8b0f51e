package testkit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Now is the moment at which tests judge.
func Now() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }

// PolicyDocument is a trust policy that allows what the tests' objects need:
// the given signers, user kpssh, port 22, the standard shim, any cluster, and hosts
// of the classes default, small, large and bm in the namespaces default and pool.
func PolicyDocument(signers ...Signer) string {
	var b strings.Builder
	b.WriteString(`version: 3
clusters: {any: {}}
issued: "2026-11-29T00:00:00Z"
expires: "2027-05-29T00:00:00Z"
mode: enforce
rootVersion: 1
joinProfiles:
  requireWarrant: false
  maxValidity: 90d
  hosts:
    users: [kpssh]
    ports: [22]
    shimCommands: [/opt/kpssh/kpssh-shim]
    profiles: {default: ["*"], small: ["*"], large: ["*"], bm: ["*"]}
    namespaces:
      default: {classes: [default, small, large, bm], nodeNames: ["*"]}
      pool: {classes: [default, small, large, bm], nodeNames: ["*"]}
  thresholds: {}
  signers:
`)
	for i, s := range signers {
		fmt.Fprintf(&b, "  - {name: signer-%d, key: %q}\n", i, s.Line)
	}
	return b.String()
}

// Roots are the given keys, all of which must sign.
func Roots(t testing.TB, keys ...Signer) *trustpolicy.Roots {
	t.Helper()
	var lines []string
	for _, k := range keys {
		lines = append(lines, k.Line)
	}
	roots, err := trustpolicy.ParseRoots([]byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return roots
}

// Policy signs the document with the roots and verifies it at Now.
func Policy(t testing.TB, document string, roots ...Signer) *trustpolicy.Policy {
	t.Helper()
	signed := trustpolicy.Signed{Document: []byte(document)}
	for _, r := range roots {
		signed.Signatures = append(signed.Signatures, Sign(t, r, trustpolicy.Namespace, []byte(document)))
	}
	p, err := trustpolicy.Verify(signed, Roots(t, roots...), trustpolicy.AnyCluster, Now())
	if err != nil {
		t.Fatalf("policy: %v", err)
	}
	return p
}
