package fresh

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// cluster answers a second after it looked at what is stored.
type cluster struct {
	*Objects
	stored client.Client
	reads  int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	at := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&corev1.ConfigMap{ObjectMeta: at("pool", "a"), Data: map[string]string{"is": "pool/a"}},
		&corev1.ConfigMap{ObjectMeta: at("other", "a"), Data: map[string]string{"is": "other/a"}},
		&corev1.Secret{ObjectMeta: at("pool", "a"), Data: map[string][]byte{"is": []byte("a secret")}},
	).Build()
	c := &cluster{stored: stored}
	c.Objects = NewObjects(interceptor.NewClient(stored, interceptor.Funcs{
		Get: func(ctx context.Context, real client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			c.reads++
			err := real.Get(ctx, key, o, opts...)
			time.Sleep(time.Second)
			return err
		},
	}))
	return c
}

func key(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// set changes the ConfigMap pool/a.
func (c *cluster) set(t *testing.T, value string) {
	t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "pool", Name: "a"}, Data: map[string]string{"is": value}}
	if err := c.stored.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func TestWhoAskForOneObjectShareAReadAndHaveCopiesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var mu sync.Mutex
		var got []string
		var all sync.WaitGroup
		ask := func(n int) {
			for range n {
				all.Go(func() {
					m := corev1.ConfigMap{Data: map[string]string{"stood": "here"}}
					if err := c.Get(t.Context(), key("pool", "a"), &m); err != nil || len(m.Data) != 1 {
						t.Errorf("%v, %v", m.Data, err)
					}
					mu.Lock()
					defer mu.Unlock()
					got = append(got, m.Data["is"])
					m.Data["is"] = "what one made of it"
				})
			}
			synctest.Wait()
		}
		ask(1)
		c.set(t, "changed")
		ask(3) // a read is on its way, which began before the change
		all.Wait()
		if diff := cmp.Diff([]string{"pool/a", "changed", "changed", "changed"}, got); diff != "" {
			t.Error(diff)
		}
		if c.reads != 2 {
			t.Errorf("%d reads", c.reads)
		}
	})
}

func TestNothingElseIsSharedThanOneObjectOfOneKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		var here, there, none corev1.ConfigMap
		var secret corev1.Secret
		var loose, looseSecret unstructured.Unstructured
		loose.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		looseSecret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		errs := map[string]error{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for what, get := range map[string]func() error{
			"here":   func() error { return c.Get(t.Context(), key("pool", "a"), &here) },
			"there":  func() error { return c.Get(t.Context(), key("other", "a"), &there) },
			"secret": func() error { return c.Get(t.Context(), key("pool", "a"), &secret) },
			"none":   func() error { return c.Get(t.Context(), key("pool", "b"), &none) },
			"loose":  func() error { return c.Get(t.Context(), key("pool", "a"), &loose) },
			"both":   func() error { return c.Get(t.Context(), key("pool", "a"), &looseSecret) },
		} {
			all.Go(func() {
				err := get()
				mu.Lock()
				defer mu.Unlock()
				errs[what] = err
			})
		}
		all.Wait()
		if !apierrors.IsNotFound(errs["none"]) {
			t.Errorf("what is not there: %v", errs["none"])
		}
		delete(errs, "none")
		for what, err := range errs {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		is, _, err := unstructured.NestedString(loose.Object, "data", "is")
		if got := []string{here.Data["is"], there.Data["is"], string(secret.Data["is"]), is, looseSecret.GetKind()}; err != nil ||
			!cmp.Equal(got, []string{"pool/a", "other/a", "a secret", "pool/a", "Secret"}) {
			t.Errorf("%q, %v", got, err)
		}
		if c.reads != 6 {
			t.Errorf("%d reads", c.reads)
		}
		synctest.Wait()
		if n := len(c.Objects.reads.newest); n != 0 {
			t.Errorf("%d reads are remembered", n)
		}
	})
}
