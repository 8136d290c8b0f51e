package hostrun

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// kpsshVersion is the version of karpenter-provider-ssh's kinds that is signed.
const kpsshVersion = "v1beta1"

// get reads an object as it is stored, as JSON; nil when there is none. Nothing is
// cached: what was deleted or changed a moment ago must not run.
func (r *Reconciler) get(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, []byte, error) {
	u := newObject(object.GroupKPSSH, kpsshVersion, kind)
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
	if isNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s %q: %w", kind, name, err)
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		return nil, nil, fmt.Errorf("writing %s %q as JSON: %v", kind, name, err)
	}
	return u, raw, nil
}

// readHost reads the SSHHost and whether karpenter-provider-ssh holds it.
func (r *Reconciler) readHost(ctx context.Context, namespace, name string, st *stored) error {
	u, raw, err := r.get(ctx, object.KindHost, namespace, name)
	if err != nil || u == nil {
		return err
	}
	claim, found, err := unstructured.NestedFieldNoCopy(u.Object, "status", "claimRef")
	if err != nil {
		found, claim = true, "a status that is none" // whoever wrote it, the host is not free
	}
	st.host, st.claimed = raw, found && claim != nil
	return nil
}

// readSecret reads a Secret of the run's namespace, by name. what says what it is for.
func (r *Reconciler) readSecret(ctx context.Context, namespace, name, what string) (map[string][]byte, *refusal, error) {
	var secret corev1.Secret
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	if name == "" || isNotFound(err) {
		return nil, refuse(reasonSecretNotFound, fmt.Sprintf("there is no Secret %q in namespace %q with %s", name, namespace, what)), nil
	}
	// check: NamespaceRefused: a run in a namespace that was not given to the relay is tried for ever
	if apierrors.IsForbidden(err) {
		return nil, refuse(string(decision.NamespaceRefused), fmt.Sprintf("the relay may not read Secrets in namespace %q: install manifests/components/host-namespace there", namespace)), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading Secret %q: %w", name, err)
	}
	return secret.Data, nil, nil
}
