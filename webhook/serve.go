package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	cmtls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/hostwarrant/hostwarrant/webhook/admit"
	"github.com/hostwarrant/hostwarrant/webhook/cabundle"
	"github.com/hostwarrant/hostwarrant/webhook/certgate"
	"github.com/hostwarrant/hostwarrant/webhook/metrics"
	"github.com/hostwarrant/hostwarrant/webhook/policy"
)

// reviewLimit is shorter than the timeoutSeconds of the webhook configurations.
const reviewLimit = 4 * time.Second

// serveOptions are the flags of "serve".
type serveOptions struct {
	options
	policyFile string
	address    string
	drainDelay time.Duration
}

func serveCommand(stderr io.Writer) *cobra.Command {
	o := &serveOptions{}
	c := &cobra.Command{
		Use:     "serve",
		Short:   "Answer the API server's admission reviews",
		Example: "  hostwarrant-webhook serve --anchor /etc/hostwarrant/anchor",
		Args:    usageArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return serve(c.Context(), o, stderr)
		},
	}
	o.register(c.Flags())
	c.Flags().StringVar(&o.policyFile, "policy-file", "", "file with a TrustPolicy, offered beside the one in the cluster and read again when it changes")
	c.Flags().StringVar(&o.address, "address", ":9443", "where admission reviews are answered")
	c.Flags().DurationVar(&o.drainDelay, "drain-delay", 10*time.Second, "how long to go on serving, not ready, after SIGTERM")
	return c
}

func (o *serveOptions) check() error {
	if _, err := splitAddress(o.address); err != nil {
		return usageError{fmt.Errorf("--address: %v", err)}
	}
	return o.options.check()
}

// serve runs the webhook until ctx ends, and then drains.
func serve(ctx context.Context, o *serveOptions, stderr io.Writer) error {
	log := newLogger(stderr)
	anchor, err := policy.LoadAnchor(o.anchor)
	if err != nil {
		return err
	}
	config, err := o.restConfig()
	if err != nil {
		return err
	}
	counters, err := metrics.New(crmetrics.Registry)
	if err != nil {
		return err
	}
	secret, err := o.servingSecret()
	if err != nil {
		return err
	}
	source := servingCertificates(config, secret)
	bundles, err := storedBundles(config, source.DNSNames[0])
	if err != nil {
		return err
	}
	gate := certgate.New(source.GetCertificate, bundles.Trust, time.Now)
	at, err := splitAddress(o.address)
	if err != nil {
		return err
	}
	m, err := newManager(config, o.metricsAddress, webhook.NewServer(webhook.Options{
		Host: at.host, Port: at.port, TLSOpts: []func(*tls.Config){tlsOptions(gate.GetCertificate)},
	}))
	if err != nil {
		return err
	}
	holder := policy.New(anchor, counters, log)
	d := &drain{delay: o.drainDelay}
	server := m.GetWebhookServer() // the manager starts only what is registered on this one
	server.Register("/validate", d.bound(reviewLimit, &admission.Webhook{
		Handler: &admit.Validator{Policies: holder, Recorder: counters, Log: log, Now: time.Now},
	}))
	server.Register("/mutate", d.bound(reviewLimit, &admission.Webhook{
		Handler: &admit.Mutator{Policies: holder, Log: log, Now: time.Now},
	}))
	health := newHealthServer(o.healthAddress, func(r *http.Request) error {
		if d.draining.Load() {
			return errors.New("draining")
		}
		if err := holder.Ready(time.Now()); err != nil {
			return err
		}
		if err := gate.Ready(); err != nil {
			return err
		}
		return server.StartedChecker()(r)
	})
	health.mux.Handle("GET /policyz", holder)
	feed := &policy.Feed{Holder: holder, Cache: m.GetCache(), File: o.policyFile, Log: log}
	for _, r := range []manager.Runnable{source, bundles, health, feed} {
		if err := m.Add(r); err != nil {
			return err
		}
	}
	late, cancel := d.context(ctx)
	defer cancel()
	log.Info("starting", "address", o.address, "clusterID", anchor.ClusterID, "anchor", anchor.Digest)
	return m.Start(late)
}

// servingCertificates signs this replica's leaf with the CA in the Secret, and renews both in time.
func servingCertificates(config *rest.Config, secret types.NamespacedName) *cmtls.DynamicSource {
	var names []string
	for _, service := range []string{"hostwarrant-webhook", "hostwarrant-webhook-policy"} {
		names = append(names, service+"."+secret.Namespace+".svc")
	}
	return &cmtls.DynamicSource{
		DNSNames: names,
		Authority: &authority.DynamicAuthority{
			SecretNamespace: secret.Namespace, SecretName: secret.Name, CommonName: "hostwarrant-webhook-ca", RESTConfig: config,
		},
	}
}

// storedBundles watches the caBundles that the API server checks our certificate by.
func storedBundles(config *rest.Config, dnsName string) (*certgate.Bundles, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return &certgate.Bundles{Name: cabundle.ConfigurationName, DNSName: dnsName, Config: config, Scheme: scheme, Now: time.Now}, nil
}

// tlsOptions takes the leaf from the source. HTTP/2 is off: its stream resets let one client occupy
// the server (CVE-2023-44487, CVE-2023-39325), and one connection for all requests would pin the API
// server to a replica that is draining.
func tlsOptions(source certgate.Source) func(*tls.Config) {
	return func(c *tls.Config) {
		c.GetCertificate = source
		c.MinVersion = tls.VersionTLS13
		c.NextProtos = []string{"http/1.1"}
	}
}

// newManager makes the manager of "serve"; its cache holds the one trust policy.
func newManager(config *rest.Config, metricsAddress string, server webhook.Server) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	return manager.New(config, manager.Options{
		Scheme: scheme, WebhookServer: server, Cache: policy.CacheOptions(),
		Metrics:                metricsserver.Options{BindAddress: metricsAddress},
		HealthProbeBindAddress: "0", // health.go serves these
	})
}
