package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/hostwarrant/hostwarrant/webhook/admit"
	"github.com/hostwarrant/hostwarrant/webhook/metrics"
	"github.com/hostwarrant/hostwarrant/webhook/policy"
	"github.com/hostwarrant/hostwarrant/webhook/snapshot"
)

// reviewLimit is shorter than the timeoutSeconds of the webhook configurations.
const reviewLimit = 4 * time.Second

// serveOptions are the flags of "serve".
type serveOptions struct {
	options
	policyFile     string
	address        string
	certificateDir string
	leafValidity   time.Duration
	annotate       bool
	drainDelay     time.Duration
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
	c.Flags().StringVar(&o.certificateDir, "serving-certificate-dir", "", "directory with tls.crt and tls.key, read again when they change; then --serving-secret is not touched")
	c.Flags().DurationVar(&o.leafValidity, "serving-leaf-validity", 7*24*time.Hour, "how long a certificate that the CA in --serving-secret signs is valid; renewed after two thirds of it")
	c.Flags().BoolVar(&o.annotate, "annotate-verdict", false, "note on each object that /mutate is asked about what was thought of it; nobody decides by it")
	c.Flags().DurationVar(&o.drainDelay, "drain-delay", 10*time.Second, "how long to go on serving, not ready, after SIGTERM")
	return c
}

func (o *serveOptions) check() error {
	if err := checkAddress(o.address); err != nil {
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
	counters, err := metrics.New(crmetrics.Registry, time.Now)
	if err != nil {
		return err
	}
	secret, err := o.servingSecret()
	if err != nil {
		return err
	}
	certificate, err := certificateFrom(o.certificateDir, o.leafValidity, config, secret, log)
	if err != nil {
		return err
	}
	bundles, err := certificate.gate(config, secret.Namespace)
	if err != nil {
		return err
	}
	m, err := newManager(config, o.metricsAddress)
	if err != nil {
		return err
	}
	t := trusted{policies: policy.New(anchor, counters, log), controller: controllerAccount(secret.Namespace)}
	t.stored = snapshot.New(m.GetCache(), m.GetRESTMapper(), t.policies.Remember, log)
	d := &drain{delay: o.drainDelay}
	server := &reviewServer{address: o.address, tls: certificate.tlsConfig(), handler: reviews(d, t, counters, o.annotate, log), log: log}
	feed := &policy.Feed{
		Holder: t.policies, Cache: m.GetCache(), File: o.policyFile, Log: log,
		Identify: clusterUID(m.GetAPIReader()), LedgerRead: t.stored.LedgerRead,
	}
	for _, r := range []manager.Runnable{certificate, bundles, t.stored, feed, server, serveHealth(o.healthAddress, t, d, certificate, server)} {
		if err := m.Add(r); err != nil {
			return err
		}
	}
	late, cancel := d.context(ctx)
	defer cancel()
	log.Info("starting", "address", o.address, "clusterID", anchor.ClusterID, "anchor", anchor.Digest)
	return m.Start(late)
}

// reviews answers /validate and /mutate, within the limits of memory and time.
func reviews(d *drain, t trusted, counters *metrics.Metrics, annotate bool, log *slog.Logger) http.Handler {
	limits := admit.NewLimits()
	endpoint := func(r admit.Reviewer) http.Handler {
		return d.bound(reviewLimit, &admit.Endpoint{Reviewer: r, Limits: limits, Recorder: counters, Log: log})
	}
	mux := http.NewServeMux()
	mux.Handle("/validate", endpoint(&admit.Validator{
		Trust: t, Recorder: counters, Findings: admit.NewFindings(), Unpacking: admit.NewUnpacking(), Log: log, Now: time.Now,
	}))
	mux.Handle("/mutate", endpoint(&admit.Mutator{Trust: t, Annotate: annotate, Log: log, Now: time.Now}))
	mux.HandleFunc("/", elsewhere)
	return mux
}

// elsewhere answers other paths and keeps no connection open for them.
func elsewhere(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close")
	http.NotFound(w, r)
}

// serveHealth answers /healthz, /readyz and /policyz.
func serveHealth(address string, t trusted, d *drain, c *certificate, server *reviewServer) *healthServer {
	health := newHealthServer(address, func(*http.Request) error {
		if d.draining.Load() {
			return errors.New("draining")
		}
		if err := t.Ready(time.Now()); err != nil {
			return err
		}
		if err := c.ready(); err != nil {
			return err
		}
		if !server.listening.Load() {
			return errors.New("not listening yet")
		}
		return nil
	})
	health.mux.HandleFunc("GET /policyz", t.policies.Serve(func(r *policy.Report) { r.Snapshot = t.stored.Kinds() }))
	return health
}

// newManager makes the manager of "serve"; its cache holds the one trust policy and the snapshot.
func newManager(config *rest.Config, metricsAddress string) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	cache := policy.CacheOptions()
	cache.DefaultTransform = snapshot.Slim
	return manager.New(config, manager.Options{
		Scheme: scheme, Cache: cache,
		Metrics:                metricsserver.Options{BindAddress: metricsAddress},
		HealthProbeBindAddress: "0", // health.go serves these
	})
}
