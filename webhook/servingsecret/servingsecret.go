package servingsecret

import (
	"fmt"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
)

// Label and LabelValue mark a Secret as ours to fill. The shipped Secret has them.
const (
	Label      = "hostwarrant.dev/serving-ca"
	LabelValue = "self-managed"
)

// Check says why the self-managed CA may not use a Secret, or nil. It may use one that is empty, and
// one that it, or cert-manager's authority, marked as its own.
func Check(s *corev1.Secret) error {
	if empty(s) || ours(s) {
		return nil
	}
	return fmt.Errorf("secret %s/%s holds data that the self-managed CA did not write, and is left as it is; "+
		"name an empty Secret with --serving-secret, or set label %s=%s on this one to let it be replaced",
		s.Namespace, s.Name, Label, LabelValue)
}

// empty reports whether nothing would be lost.
func empty(s *corev1.Secret) bool {
	for _, value := range s.Data {
		if len(value) > 0 {
			return false
		}
	}
	return true
}

// ours reports whether a Secret is marked. The annotation is what the authority puts on a Secret it creates.
func ours(s *corev1.Secret) bool {
	return s.Labels[Label] == LabelValue || s.Annotations[cmapi.AllowsInjectionFromSecretAnnotation] == "true"
}
