package canary

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/hostwarrant/hostwarrant/internal/object"
)

// Prefix begins the names of canaries; the nonce follows.
const Prefix = "hostwarrant-canary-"

// Account is the ServiceAccount that writes canaries.
const Account = "hostwarrant-canary"

// noSignature looks like a signature and is none.
const noSignature = "-----BEGIN SSH SIGNATURE-----\nnone\n-----END SSH SIGNATURE-----\n"

// Kind is a kind that the webhook guards.
type Kind struct {
	Group, Name string
	Namespaced  bool
	// Webhook is the entry of our configuration that is asked about it.
	Webhook string
	spec    map[string]any
}

// movable reports whether the kind may be served by an aggregated API server in place of a CRD.
func (k Kind) movable() bool {
	return k.Group == object.GroupStorage || k.Group == object.GroupKubescape
}

// Kinds are all guarded kinds. What a canary holds is well-formed and passes the schema, and would do
// nothing if it were ever stored: it names no host, profile or key that there is.
func Kinds() []Kind {
	const objects, policy, fragments = "objects.hostwarrant.dev", "policy.hostwarrant.dev", "fragments.hostwarrant.dev"
	named := map[string]any{"name": Account}
	script := "#!/bin/sh\nexit 1\n"
	return []Kind{
		{object.GroupKPSSH, object.KindJoinProfile, false, objects, map[string]any{
			"version": "1", "scripts": map[string]any{"install": script, "join": script, "leave": script},
		}},
		{object.GroupKPSSH, object.KindHost, true, objects, map[string]any{
			// An address for documentation (RFC 5737), a Secret that is not there, a key that nobody has.
			"address": "192.0.2.1", "user": Account, "sshKeySecretRef": named, "execMode": object.ExecVerified,
			"capacity": map[string]any{"cpu": "1", "memory": "1Gi"}, "trustedSigners": []any{nobodysKey()},
		}},
		{object.GroupKPSSH, object.KindNodeClass, false, objects, map[string]any{
			"joinProfileRef": named, "hostSelector": map[string]any{"matchLabels": map[string]any{"hostwarrant.dev/canary": "none"}},
		}},
		{object.GroupHostwarrant, object.KindHostRun, true, objects, map[string]any{
			"hostRef": named, "profileRef": named, "phase": "install", "cancel": true,
		}},
		{object.GroupHostwarrant, object.KindHostStatement, false, objects, map[string]any{
			"statement": "hostwarrant-statement: none\n", "signatures": []any{noSignature},
		}},
		{object.GroupHostwarrant, object.KindTrustPolicy, false, policy, map[string]any{
			"document": "version: 0\n", "signatures": []any{noSignature},
		}},
		// No pod has a label that names it, and it allows nothing; no rule, no binding of one.
		{object.GroupStorage, object.KindContainerProfile, true, fragments, map[string]any{}},
		{object.GroupStorage, object.KindSeccompProfile, true, fragments, map[string]any{}},
		{object.GroupKubescape, object.KindRules, true, fragments, map[string]any{"rules": []any{}}},
		{object.GroupKubescape, object.KindRuleBinding, false, fragments, map[string]any{"rules": []any{}}},
	}
}

// nobodysKey is an Ed25519 public key whose bytes are a digest, so that nobody has its private half.
func nobodysKey() string {
	const kind = "ssh-ed25519"
	point := sha256.Sum256([]byte(Account))
	blob := append([]byte{0, 0, 0, byte(len(kind))}, kind...)
	blob = append(append(blob, 0, 0, 0, byte(len(point))), point[:]...)
	return kind + " " + base64.StdEncoding.EncodeToString(blob)
}

// newNonce makes the 16 hex digits of a name.
func newNonce() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return hex.EncodeToString(b[:])
}

// body is a canary of the kind.
func (k Kind) body(version, namespace, name string) map[string]any {
	metadata := map[string]any{"name": name}
	if k.Namespaced {
		metadata["namespace"] = namespace
	}
	return map[string]any{"apiVersion": k.Group + "/" + version, "kind": k.Name, "metadata": metadata, "spec": k.spec}
}
