package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	cmtls "github.com/cert-manager/cert-manager/pkg/server/tls"
	"github.com/cert-manager/cert-manager/pkg/server/tls/authority"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/hostwarrant/hostwarrant/webhook/cabundle"
	"github.com/hostwarrant/hostwarrant/webhook/certgate"
	"github.com/hostwarrant/hostwarrant/webhook/servingsecret"
)

// certificate is where the serving certificate comes from.
type certificate struct {
	manager.Runnable
	get func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ready says why nothing is served, or nothing that the API server would take.
	ready func() error
}

// NeedLeaderElection says that every replica has a certificate.
func (c *certificate) NeedLeaderElection() bool { return false }

// Files of a serving certificate directory, as a mounted Secret of type kubernetes.io/tls has them.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// certificateFrom takes the certificate from a directory, read again when it changes, where one is
// given: then the Secret with the CA is not touched.
func certificateFrom(dir string, leafValidity time.Duration, config *rest.Config, secret types.NamespacedName, log *slog.Logger) (*certificate, error) {
	if dir == "" {
		source := servingCertificates(config, secret, leafValidity)
		start := manager.RunnableFunc(func(ctx context.Context) error { return servingsecret.Start(ctx, config, secret, log, source.Start) })
		return &certificate{Runnable: start, get: source.GetCertificate}, nil
	}
	watcher, err := certwatcher.New(filepath.Join(dir, certificateFile), filepath.Join(dir, keyFile))
	if err != nil {
		return nil, fmt.Errorf("reading the serving certificate: %v", err)
	}
	return &certificate{Runnable: watcher, get: watcher.GetCertificate}, nil
}

// gate holds a new certificate back until the API server trusts it, by the caBundles as they are
// stored. What it returns watches them, and is to be started beside the certificate.
func (c *certificate) gate(config *rest.Config, namespace string) (*certgate.Bundles, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	bundles := &certgate.Bundles{
		Name: cabundle.ConfigurationName, DNSName: serviceNames(namespace)[0], Config: config, Scheme: scheme, Now: time.Now,
	}
	g := certgate.New(c.get, bundles.Trust, time.Now)
	c.get, c.ready = g.GetCertificate, g.Ready
	return bundles, nil
}

// serviceNames are the names by which the API server calls us.
func serviceNames(namespace string) (names []string) {
	for _, service := range []string{"hostwarrant-webhook", "hostwarrant-webhook-policy"} {
		names = append(names, service+"."+namespace+".svc")
	}
	return names
}

// servingCertificates signs this replica's leaf with the CA in the Secret, and renews both in time.
func servingCertificates(config *rest.Config, secret types.NamespacedName, leafValidity time.Duration) *cmtls.DynamicSource {
	return &cmtls.DynamicSource{
		DNSNames: serviceNames(secret.Namespace),
		Authority: &authority.DynamicAuthority{
			SecretNamespace: secret.Namespace, SecretName: secret.Name, CommonName: "hostwarrant-webhook-ca",
			RESTConfig: servingsecret.Guard(config, secret), LeafDuration: leafValidity,
		},
	}
}

// tlsConfig takes the leaf from the source. HTTP/2 is off: its stream resets let one client occupy
// the server (CVE-2023-44487, CVE-2023-39325), and one connection for all requests would pin the API
// server to a replica that is draining.
func (c *certificate) tlsConfig() *tls.Config {
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
}
