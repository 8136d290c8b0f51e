//go:build linux

package storage

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hostwarrant/hostwarrant/e2e/kubescape"
)

func TestNamespaceTakesItsProfilesAlong(t *testing.T) {
	w := newWorld(t)
	w.create(t, object(t, "one", "any", `{}`))
	w.succeeds(t, "", "delete", "namespace", w.namespace, "--timeout=60s")
	list, err := w.profiles().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) > 0 {
		t.Errorf("left: %q", names(list.Items))
	}
}

// The garbage collector sees owners there: a profile goes with what owns it.
func TestOwnersTakeTheirProfilesAlong(t *testing.T) {
	w := newWorld(t)
	owner := w.create(t, object(t, "owner", "any", `{}`))
	owned := object(t, "owned", "any", `{}`)
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}})
	w.create(t, owned)
	must(t, w.profiles().Delete(t.Context(), "owner", metav1.DeleteOptions{}))
	eventually(t, "the garbage collector", func() bool {
		_, err := w.profiles().Get(t.Context(), "owned", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// The server asks the cluster itself who a caller is and what they may do.
func TestRightsAreAsked(t *testing.T) {
	w := newWorld(t)
	w.succeeds(t, "", "-n", w.namespace, "create", "serviceaccount", "reader")
	kubeconfig, err := w.cp.ServiceAccountKubeconfig(t.Context(), w.namespace, "reader")
	must(t, err)
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	must(t, err)
	list := func() error {
		c, err := dynamic.NewForConfig(config)
		must(t, err)
		_, err = c.Resource(resource()).Namespace(w.namespace).List(t.Context(), metav1.ListOptions{})
		return err
	}
	token := config.BearerToken
	for _, host := range []string{config.Host, "https://" + w.at.String()} {
		config.Host, config.BearerToken = host, token
		if host != w.cp.RESTConfig().Host {
			config.CAData = w.certificate
		}
		if err := list(); !apierrors.IsForbidden(err) {
			t.Errorf("without a right, at %s: %v", host, err)
		}
		config.BearerToken = "no-token"
		if err := list(); !apierrors.IsUnauthorized(err) {
			t.Errorf("with a token of nobody, at %s: %v", host, err)
		}
	}
	config.BearerToken = token
	w.succeeds(t, "", "-n", w.namespace, "create", "role", "reader", "--verb=list", "--resource=containerprofiles.spdx.softwarecomposition.kubescape.io")
	w.succeeds(t, "", "-n", w.namespace, "create", "rolebinding", "reader", "--role=reader", "--serviceaccount="+w.namespace+":reader")
	eventually(t, "the right to be known", func() bool { return list() == nil })
}

func TestStoredObjectsOutliveTheProgram(t *testing.T) {
	w := newWorld(t)
	w.create(t, object(t, "one", "any", `{"execs":[{"path":"/bin/id"}]}`))
	before := w.get(t, "one")
	must(t, w.Stop())
	if _, err := w.profiles().Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsServiceUnavailable(err) {
		t.Errorf("while it is stopped: %v", err)
	}
	must(t, w.Resume(t.Context()))
	if got := w.get(t, "one"); got.GetUID() != before.GetUID() || spec(t, got) != spec(t, before) {
		t.Errorf("%v; want %v", got, before)
	}
}

// One control plane can show both, one after the other.
func TestHomesTakeTurns(t *testing.T) {
	cp := shared.ControlPlane(t)
	for range 2 {
		must(t, kubescape.InstallCRDs(t.Context(), cp, kubescape.Profiles))
		must(t, kubescape.RemoveCRDs(t.Context(), cp, kubescape.Profiles))
		s, err := New(t.Context(), shared.Lab(t), cp, Built(t))
		must(t, err)
		must(t, s.Close(t.Context()))
	}
}
