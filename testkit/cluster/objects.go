package cluster

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hostwarrant/hostwarrant/internal/object"
)

// Host is a Verified SSHHost in namespace pool that trusts one signer. Its Secret is NAME-ssh.
func Host(name, signer string) *unstructured.Unstructured {
	h := New(object.GroupKPSSH, "v1beta1", object.KindHost)
	h.SetNamespace("pool")
	h.SetName(name)
	h.Object["spec"] = map[string]any{
		"address": "10.0.0.7", "user": "kpssh", "execMode": "Verified",
		"trustedSigners": []any{signer}, "sshKeySecretRef": map[string]any{"name": name + "-ssh"},
	}
	return h
}

// TrustPolicy is the TrustPolicy of the cluster, with one signature.
func TrustPolicy(document, signature string) *unstructured.Unstructured {
	p := New(object.GroupHostwarrant, "v1alpha1", object.KindTrustPolicy)
	p.SetName(object.TrustPolicyName)
	p.Object["spec"] = map[string]any{"document": document, "signatures": []any{signature}}
	return p
}

// New is an empty object of a kind.
func New(group, version, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(group + "/" + version)
	u.SetKind(kind)
	return u
}
