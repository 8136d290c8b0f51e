// Command storage is an aggregated API server for ContainerProfiles that behaves as kubescape's does:
// see the package above it for how, and for what it is good for. It stops nobody.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/rest"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/apiserver/pkg/util/feature"

	"github.com/hostwarrant/hostwarrant/e2e/storage/server/profile"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stderr)
	stop()
	os.Exit(code)
}

// settings are those of any API server, and where to write requests and look for faults.
type settings struct {
	scheme           *runtime.Scheme
	codecs           serializer.CodecFactory
	server           *options.RecommendedOptions
	requests, faults string
}

func run(ctx context.Context, args []string, stderr io.Writer) int {
	s := newSettings()
	flags := pflag.NewFlagSet("storage", pflag.ContinueOnError)
	s.server.AddFlags(flags)
	flags.StringVar(&s.requests, "requests", "", "file to which a line is added for each request")
	flags.StringVar(&s.faults, "faults", "", "directory of files named as objects, with the number of Gets that are to fail")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 {
		fmt.Fprintf(stderr, "storage: error: %v %q\n", err, flags.Args())
		return 2
	}
	if err := s.serve(ctx); err != nil {
		fmt.Fprintf(stderr, "storage: error: %v\n", err)
		return 1
	}
	return 0
}

func newSettings() *settings {
	s := &settings{scheme: newScheme()}
	s.codecs = serializer.NewCodecFactory(s.scheme)
	s.server = options.NewRecommendedOptions("/unset", s.codecs.LegacyCodec(profile.GroupVersion()))
	s.server.Admission = nil // the whole chain, webhooks and policies with it
	s.server.Features.EnablePriorityAndFairness = false
	s.server.Etcd.EnableWatchCache = false // List would hand out the cache's own objects, to be stripped
	return s
}

// serve returns when ctx ends.
func (s *settings) serve(ctx context.Context) error {
	// Its lists come from a database that cannot stream them: clients fall back to List and Watch.
	if err := feature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(features.WatchList): false}); err != nil {
		return err
	}
	config, err := s.config()
	if err != nil {
		return err
	}
	server, err := config.Complete().New("storage", genericserver.NewEmptyDelegate())
	if err != nil {
		return err
	}
	registry, err := newProfiles(s.scheme, config.RESTOptionsGetter)
	if err != nil {
		return err
	}
	group := genericserver.NewDefaultAPIGroupInfo(profile.GroupVersion().Group, s.scheme, runtime.NewParameterCodec(s.scheme), s.codecs)
	group.NegotiatedSerializer = text{s.codecs}
	group.VersionedResourcesStorageMap[profile.GroupVersion().Version] = map[string]rest.Storage{resource: registry}
	if err := server.InstallAPIGroup(&group); err != nil {
		return err
	}
	return server.PrepareRun().RunWithContext(ctx)
}

func (s *settings) config() (*genericserver.RecommendedConfig, error) {
	audit, err := openAudit(s.requests, s.faults)
	if err != nil {
		return nil, err
	}
	at := []net.IP{s.server.SecureServing.BindAddress}
	if err := s.server.SecureServing.MaybeDefaultWithSelfSignedCerts("storage.kubescape.svc", nil, at); err != nil {
		return nil, err
	}
	config := genericserver.NewRecommendedConfig(s.codecs)
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.OpenAPIConfig = genericserver.DefaultOpenAPIConfig(definitions, openapi.NewDefinitionNamer(s.scheme))
	config.OpenAPIV3Config = genericserver.DefaultOpenAPIV3Config(definitions, openapi.NewDefinitionNamer(s.scheme))
	config.BuildHandlerChainFunc = func(api http.Handler, c *genericserver.Config) http.Handler {
		return genericserver.DefaultBuildHandlerChain(audit.before(api), c)
	}
	return config, s.server.ApplyTo(config)
}
