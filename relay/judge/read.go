package judge

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/internal/object"
)

// KPSSHVersion is the version of karpenter-provider-ssh's kinds that is signed.
const KPSSHVersion = "v1beta1"

// Objects reads what is judged.
type Objects struct {
	Reader client.Reader // what is stored, not a cache
	Runs   client.Reader // all HostRuns that the program watches, with IndexRuns
}

// Get reads an object as it is stored, as JSON; nil when there is none. Nothing is
// cached: what was deleted or changed a moment ago must not run.
func (o Objects) Get(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, []byte, error) {
	u := NewObject(object.GroupKPSSH, KPSSHVersion, kind)
	err := o.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
	if apierrors.IsNotFound(err) {
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

// Host reads the SSHHost and whether karpenter-provider-ssh holds it.
func (o Objects) Host(ctx context.Context, namespace, name string, st *Stored) error {
	u, raw, err := o.Get(ctx, object.KindHost, namespace, name)
	if err != nil || u == nil {
		return err
	}
	claim, found, err := unstructured.NestedFieldNoCopy(u.Object, "status", "claimRef")
	if err != nil {
		found, claim = true, "a status that is none" // whoever wrote it, the host is not free
	}
	st.Host, st.Claimed = raw, found && claim != nil
	return nil
}

// NewObject is an empty object of a kind.
func NewObject(group, version, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(group + "/" + version)
	u.SetKind(kind)
	return u
}
