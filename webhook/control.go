package main

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hostwarrant/hostwarrant/webhook/cabundle"
	"github.com/hostwarrant/hostwarrant/webhook/policy"
)

// leaseName is the Lease under which one replica of the controller acts.
const leaseName = "hostwarrant-controller"

func controlCommand(stderr io.Writer) *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:     "control",
		Short:   "Keep the webhook configurations' caBundle current and report on the trust policy",
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
	return c
}

// control runs the controller until ctx ends.
func control(ctx context.Context, o *options, stderr io.Writer) error {
	log := newLogger(stderr)
	anchor, err := policy.LoadAnchor(o.anchor)
	if err != nil {
		return err
	}
	config, err := o.restConfig()
	if err != nil {
		return err
	}
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
	if err := (&cabundle.Reconciler{Client: m.GetClient(), Secret: secret, Now: time.Now}).SetupWithManager(m); err != nil {
		return err
	}
	if err := (&policy.StatusReconciler{Client: m.GetClient(), Anchor: anchor, Now: time.Now}).SetupWithManager(m); err != nil {
		return err
	}
	if err := m.Add(newHealthServer(o.healthAddress, func(*http.Request) error { return nil })); err != nil {
		return err
	}
	log.Info("starting", "clusterID", anchor.ClusterID, "anchor", anchor.Digest)
	return m.Start(ctx)
}

// controlCache holds the named objects that the controller may read, and no others.
func controlCache(secret types.NamespacedName) cache.Options {
	configurations := cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", cabundle.ConfigurationName)}
	o := policy.CacheOptions()
	o.ByObject[&admissionregistrationv1.ValidatingWebhookConfiguration{}] = configurations
	o.ByObject[&admissionregistrationv1.MutatingWebhookConfiguration{}] = configurations
	o.ByObject[&corev1.Secret{}] = cache.ByObject{
		Namespaces: map[string]cache.Config{secret.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", secret.Name)}},
	}
	return o
}
