// Command certmanager runs cert-manager's own controllers, from its packages: those for self-signed
// and CA issuers and for Certificates, and the injector of CA bundles. cert-manager's programs are
// modules of their own that no proxy serves; what they start is what is started here. It stops
// nobody: it exists so that the tests meet the real thing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	requestca "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	requestselfsigned "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	"github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	"github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	"github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"         // registers itself with cert-manager
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned" // registers itself with cert-manager
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// workers of each controller.
const workers = 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run starts everything and returns when ctx ends or something does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "usage: certmanager KUBECONFIG")
		return 2
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(stderr)))
	if err := start(ctx, args[0], stdout); err != nil {
		fmt.Fprintf(stderr, "certmanager: error: %v\n", err)
		return 1
	}
	return 0
}

func start(ctx context.Context, kubeconfig string, stdout io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig: kubeconfig, KubernetesAPIQPS: 50, KubernetesAPIBurst: 100,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: "cert-manager"},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Minute, CertificateRequestMaximumBackoffDuration: time.Hour,
		},
	})
	if err != nil {
		return err
	}
	root, err := factory.Build()
	if err != nil {
		return err
	}
	if err := startControllers(ctx, factory, cancel); err != nil {
		return err
	}
	root.SharedInformerFactory.Start(ctx.Done())
	root.KubeSharedInformerFactory.Start(ctx.Done())
	root.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	fmt.Fprintln(stdout, "certmanager: started")
	if err := injector(ctx, root.RESTConfig); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// startControllers runs what issues certificates; one that ends early ends all.
func startControllers(ctx context.Context, factory *controller.ContextFactory, cancel context.CancelCauseFunc) error {
	known := controller.Known()
	for _, name := range []string{
		issuers.ControllerName, clusterissuers.ControllerName,
		approver.ControllerName, requestca.CRControllerName, requestselfsigned.CRControllerName,
		issuing.ControllerName, keymanager.ControllerName, readiness.ControllerName,
		requestmanager.ControllerName, revisionmanager.ControllerName, trigger.ControllerName,
	} {
		build, ok := known[name]
		if !ok {
			return fmt.Errorf("cert-manager has no controller %q", name)
		}
		c, err := build(factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		go func() {
			if err := c.Run(workers, ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		}()
	}
	return nil
}

// injector keeps CA bundles current until ctx ends.
func injector(ctx context.Context, config *rest.Config) error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme, certmanagerv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	m, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := cainjector.RegisterAllInjectors(ctx, m, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName: true, cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.APIServiceName: true, cainjector.CustomResourceDefinitionName: true,
		},
	}); err != nil {
		return err
	}
	return m.Start(ctx)
}
