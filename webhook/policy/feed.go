package policy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	hostwarrantv1alpha1 "github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/object"
)

// Names of the sources, as logs show them.
const (
	sourceCluster = "cluster"
	sourceFile    = "file"
)

// retryEvery is how often offers are tried again: a policy becomes valid at its issued time, and a
// file is read again.
const retryEvery = 5 * time.Second

// maxPolicyFile bounds what is read: etcd takes 1.5 MiB, and YAML may indent.
const maxPolicyFile = 2 << 20

// stored is an empty TrustPolicy, read without a Go type that could drop a field.
func stored() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(hostwarrantv1alpha1.GroupVersion().WithKind(object.KindTrustPolicy))
	return u
}

// CacheOptions limits a cache to the one TrustPolicy.
func CacheOptions() cache.Options {
	return cache.Options{ByObject: map[client.Object]cache.ByObject{
		stored(): {Field: fields.OneTermEqualSelector("metadata.name", object.TrustPolicyName)},
	}}
}

// Feed offers what the cluster and a file hold to a Holder.
type Feed struct {
	Holder *Holder
	Cache  cache.Cache
	// File is a path, or empty.
	File string
	// Identify gives the UID of the namespace kube-system, "" where it may not be read.
	Identify func(context.Context) (string, error)
	// LedgerRead waits until the ledger was read once, and was handed to the Holder.
	LedgerRead func(context.Context) bool
	Log        *slog.Logger

	lastFile []byte
}

// NeedLeaderElection says that every replica has a policy.
func (f *Feed) NeedLeaderElection() bool { return false }

// Start feeds until ctx ends.
func (f *Feed) Start(ctx context.Context) error {
	f.identify(ctx)
	f.readFile()
	informer, err := f.Cache.GetInformer(ctx, stored(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching the trust policy: %v", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    f.offer,
		UpdateFunc: func(_, now any) { f.offer(now) },
		DeleteFunc: func(any) { f.Log.Warn("the TrustPolicy was deleted; what is in force stays") },
	})
	if err != nil {
		return fmt.Errorf("watching the trust policy: %v", err)
	}
	if f.LedgerRead(ctx) && toolscache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		f.Holder.Settle(time.Now())
	}
	ticker := time.NewTicker(retryEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			f.readFile()
			f.Holder.Retry(time.Now())
		}
	}
}

// identify finds out which cluster this is, however long it takes: a policy that names a UID must not
// be judged as if it named none.
func (f *Feed) identify(ctx context.Context) {
	for {
		uid, err := f.Identify(ctx)
		if err == nil {
			f.Holder.Identify(uid)
			return
		}
		f.Log.Warn("reading the cluster's UID; no policy is in force before", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(identifyEvery):
		}
	}
}

// identifyEvery is how often the cluster's UID is asked for while the API server does not answer.
const identifyEvery = time.Second

// offer hands in an object of the informer.
func (f *Feed) offer(o any) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		f.Log.Error("the trust policy informer holds something else", "type", fmt.Sprintf("%T", o))
		return
	}
	raw, err := u.MarshalJSON()
	if err != nil {
		f.Log.Error("encoding the stored trust policy", "error", err)
		return
	}
	f.Holder.Offer(sourceCluster, raw, time.Now())
}

// readFile hands in the file, if there is one and it changed.
func (f *Feed) readFile() {
	if f.File == "" {
		return
	}
	text, err := readBounded(f.File, maxPolicyFile)
	if err == nil && bytes.Equal(text, f.lastFile) {
		return
	}
	raw := []byte(nil)
	if err == nil {
		f.lastFile = text
		raw, err = yaml.YAMLToJSONStrict(text)
	}
	if err == nil && len(bytes.TrimSpace(text)) == 0 {
		err = errors.New("is empty")
	}
	if err != nil {
		f.Log.Error("reading the policy file; what is in force stays", "file", f.File, "error", err)
		return
	}
	f.Holder.Offer(sourceFile, raw, time.Now())
}
