//go:build linux

package product

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
)

// binding gives a group a ClusterRole.
const binding = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %q}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: %q}]
`

// BindBootstrappers lets the bearers of our tokens ask for certificates: what docs/operations/join.md has bound.
func (p *Product) BindBootstrappers(ctx context.Context) error {
	return p.bind(ctx, "hostwarrant-node-bootstrapper", "system:node-bootstrapper", "system:bootstrappers:hostwarrant")
}

// BindRenewals lets nodes renew their certificates, as clusters of kubeadm's do.
func (p *Product) BindRenewals(ctx context.Context) error {
	return p.bind(ctx, "node-renewal", "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:nodes")
}

func (p *Product) bind(ctx context.Context, name, role, group string) error {
	return p.apply(ctx, strings.NewReader(fmt.Sprintf(binding, name, role, group)), "-f", "-")
}

// ListHostKey writes a host's key where the approver looks for it.
func (p *Product) ListHostKey(ctx context.Context, namespace, name string, key ssh.PublicKey) error {
	object := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: hostwarrant-host-keys, namespace: %s}, data: {%s.%s: %q}}",
		Namespace, namespace, name, ssh.MarshalAuthorizedKey(key))
	// A manager of its own for each host: none takes another's line away.
	return p.apply(ctx, strings.NewReader(object), "--field-manager=list-"+name, "-f", "-")
}

// PendingKey is where the kubelet of examples/join keeps the key that it waits with.
const PendingKey = "/var/lib/kubelet/pki/kubelet-client.key.tmp"

// AsNode lets a host become a node: it has kubelet and what that needs, and its shim knows where kubelet's key is.
func AsNode(o *lab.HostOptions) {
	o.Node = true
	o.ShimConf += "kubelet-key=" + PendingKey + "\n"
}

// Bearer is a client of whoever holds a bootstrap token.
func Bearer(cp *lab.ControlPlane, value string) (kubernetes.Interface, error) {
	config := rest.AnonymousClientConfig(cp.RESTConfig())
	config.BearerToken = value
	return kubernetes.NewForConfig(config)
}

// NewKubeletKey is a key as kubelet makes it.
func NewKubeletKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// AskCertificate makes a kubelet's request for a client certificate.
func AskCertificate(ctx context.Context, c kubernetes.Interface, node string, key *ecdsa.PrivateKey) (*certificatesv1.CertificateSigningRequest, error) {
	subject := pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		return nil, err
	}
	return c.CertificatesV1().CertificateSigningRequests().Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "node-csr-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
}
