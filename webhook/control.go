package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hostwarrant/hostwarrant/webhook/bundles"
	"github.com/hostwarrant/hostwarrant/webhook/cabundle"
	"github.com/hostwarrant/hostwarrant/webhook/policy"
	"github.com/hostwarrant/hostwarrant/webhook/snapshot"
)

// leaseName is the Lease under which one replica of the controller acts.
const leaseName = "hostwarrant-controller"

// controlOptions are the flags of "control".
type controlOptions struct {
	options
	injection       string
	canaryInterval  time.Duration
	rejudgeInterval time.Duration
}

// Who writes caBundle.
const (
	injectSelf     = "self"
	injectExternal = "external"
)

func controlCommand(stderr io.Writer) *cobra.Command {
	o := &controlOptions{}
	c := &cobra.Command{
		Use:     "control",
		Short:   "Keep the ledger and caBundle, judge stored objects again, and show that admission is in the path",
		Example: "  hostwarrant-webhook control --anchor /etc/hostwarrant/anchor",
		Args:    usageArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return control(c.Context(), o, stderr)
		},
	}
	o.register(c.Flags())
	c.Flags().StringVar(&o.injection, "ca-injection", injectSelf, `who writes caBundle: "self" from the Secret of --serving-secret, or "external" (cert-manager's cainjector, or you)`)
	c.Flags().DurationVar(&o.canaryInterval, "canary-interval", time.Minute, "how often a canary shows that admission is in the path, at least a second")
	c.Flags().DurationVar(&o.rejudgeInterval, "rejudge-interval", 10*time.Minute, "how often stored objects are judged again though nothing changed, at least a second")
	return c
}

func (o *controlOptions) check() error {
	if o.injection != injectSelf && o.injection != injectExternal {
		return usageError{fmt.Errorf("--ca-injection is %q, not %s or %s", o.injection, injectSelf, injectExternal)}
	}
	if o.canaryInterval < time.Second || o.rejudgeInterval < time.Second {
		return usageError{fmt.Errorf("--canary-interval and --rejudge-interval are at least %s", time.Second)}
	}
	return o.options.check()
}

// Requests to the API server a second, and in a burst: a policy change may bring an event for each of
// a thousand objects, within a minute.
const (
	controlQPS   = 100
	controlBurst = 200
)

// control runs the controller until ctx ends.
func control(ctx context.Context, o *controlOptions, stderr io.Writer) error {
	log := newLogger(stderr)
	anchor, err := policy.LoadAnchor(o.anchor)
	if err != nil {
		return err
	}
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = controlQPS, controlBurst
	secret, err := o.servingSecret()
	if err != nil {
		return err
	}
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	m, err := manager.New(config, manager.Options{
		Scheme: scheme, Cache: controlCache(secret),
		LeaderElection: true, LeaderElectionID: leaseName, LeaderElectionNamespace: secret.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        "0", // health.go serves these
	})
	if err != nil {
		return err
	}
	if o.injection == injectSelf {
		if err := (&cabundle.Reconciler{Client: m.GetClient(), Secret: secret, Now: time.Now}).SetupWithManager(m); err != nil {
			return err
		}
	}
	if err := (&policy.StatusReconciler{Client: m.GetClient(), Anchor: anchor, Now: time.Now}).SetupWithManager(m); err != nil {
		return err
	}
	parts, err := (&controller{manager: m, anchor: anchor, namespace: secret.Namespace, options: o, log: log}).parts()
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := m.Add(part); err != nil {
			return err
		}
	}
	log.Info("starting", "clusterID", anchor.ClusterID, "anchor", anchor.Digest)
	return m.Start(ctx)
}

// controlCache holds the named objects that the controller may read, and no others.
func controlCache(secret types.NamespacedName) cache.Options {
	configurations := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", cabundle.ConfigurationName)}
	o := policy.CacheOptions()
	o.DefaultTransform = slim
	o.ByObject[&admissionregistrationv1.ValidatingWebhookConfiguration{}] = configurations
	o.ByObject[&admissionregistrationv1.MutatingWebhookConfiguration{}] = configurations
	o.ByObject[&corev1.Secret{}] = cache.ByObject{
		Namespaces: map[string]cache.Config{secret.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", secret.Name)}},
	}
	return o
}

// slim keeps of what is watched what is read of it.
func slim(o any) (any, error) {
	if slimmed, ok := bundles.Slim(o); ok {
		return slimmed, nil
	}
	return snapshot.Slim(o)
}
