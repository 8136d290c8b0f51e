package main

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	hostwarrantv1alpha1 "github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

// options are the flags that both commands have.
type options struct {
	anchor         string
	kubeconfig     string
	secret         string
	healthAddress  string
	metricsAddress string
}

func (o *options) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.anchor, "anchor", "", "directory with the files roots and cluster-id (required)")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; without it KUBECONFIG, then the pod's service account")
	flags.StringVar(&o.secret, "serving-secret", "hostwarrant-system/hostwarrant-webhook-ca", "namespace/name of the Secret that holds the serving CA")
	flags.StringVar(&o.healthAddress, "health-address", ":8081", "where /healthz and /readyz are served, and by serve /policyz")
	flags.StringVar(&o.metricsAddress, "metrics-address", ":8080", "where /metrics is served")
}

// servingSecret is the Secret that --serving-secret names.
func (o *options) servingSecret() (types.NamespacedName, error) {
	namespace, name, ok := strings.Cut(o.secret, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, usageError{fmt.Errorf("--serving-secret is %q, not namespace/name", o.secret)}
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}

func (o *options) check() error {
	if o.anchor == "" {
		return usageError{fmt.Errorf("--anchor is missing")}
	}
	for flag, address := range map[string]string{"--health-address": o.healthAddress, "--metrics-address": o.metricsAddress} {
		if err := checkAddress(address); err != nil {
			return usageError{fmt.Errorf("%s: %v", flag, err)}
		}
	}
	_, err := o.servingSecret()
	return err
}

// checkAddress wants an address with a port in figures.
func checkAddress(address string) error {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if _, err := strconv.ParseUint(text, 10, 16); err != nil {
		return fmt.Errorf("%q is not a port", text)
	}
	return nil
}

// restConfig finds the API server.
func (o *options) restConfig() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %v (give --kubeconfig, or run in a pod)", err)
	}
	return config, nil
}

// newScheme holds the kinds that the programs read and write.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, hostwarrantv1alpha1.AddToScheme(scheme)
}

// newLogger writes JSON lines, for us and for the libraries.
func newLogger(stderr io.Writer) *slog.Logger {
	h := slog.NewJSONHandler(stderr, nil)
	crlog.SetLogger(logr.FromSlogHandler(h))
	klog.SetLogger(logr.FromSlogHandler(h))
	return slog.New(h)
}
