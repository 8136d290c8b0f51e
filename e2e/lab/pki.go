//go:build linux

package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pkiLife is how long the certificates of a lab hold; a demo may stay up over a weekend.
const pkiLife = 30 * 24 * time.Hour

// authority is one certificate authority. Cluster, etcd and front proxy each have their own, so that a certificate
// of one is nothing to the others.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	now  time.Time
}

// leaf describes a certificate to issue; with names or addresses it is a server's.
type leaf struct {
	file   string // without ending
	name   string // common name
	orgs   []string
	dns    []string
	ips    []net.IP
	client bool
}

func newAuthority(dir, file, name string, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", name, err)
	}
	t := template(name, now)
	t.IsCA = true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making %s: %w", name, err)
	}
	a := &authority{dir: dir, cert: cert, key: key, now: now}
	return a, writePair(dir, file, der, key)
}

func template(name string, now time.Time) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber:          big.NewInt(0).SetBytes(randomSerial()),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-time.Minute),
		NotAfter:              now.Add(pkiLife),
		BasicConstraintsValid: true,
	}
}

// randomSerial is 127 random bits: positive and within the 20 octets of RFC 5280 4.1.2.2.
func randomSerial() []byte {
	b := make([]byte, 16)
	if _, err := rand.Read(b); err != nil {
		panic(err) // crypto/rand does not fail
	}
	b[0] &= 0x7f
	return b
}

// issue writes <file>.crt and <file>.key and returns both as PEM.
func (a *authority) issue(l leaf) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("issuing %s: %w", l.file, err)
	}
	t := template(l.name, a.now)
	t.Subject.Organization = l.orgs
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.DNSNames, t.IPAddresses = l.dns, l.ips
	if len(l.dns)+len(l.ips) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	if l.client {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageClientAuth)
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("issuing %s: %w", l.file, err)
	}
	if err := writePair(a.dir, l.file, der, key); err != nil {
		return nil, nil, err
	}
	certPEM, err = os.ReadFile(filepath.Join(a.dir, l.file+".crt"))
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = os.ReadFile(filepath.Join(a.dir, l.file+".key"))
	return certPEM, keyPEM, err
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func writePair(dir, file string, der []byte, key *ecdsa.PrivateKey) error {
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return errors.Join(
		os.WriteFile(filepath.Join(dir, file+".crt"), crt, 0o600),
		os.WriteFile(filepath.Join(dir, file+".key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600),
	)
}

// clusterPKI is what the control plane's processes read from <state>/pki.
type clusterPKI struct {
	dir        string
	cluster    *authority
	etcd       *authority
	frontProxy *authority
}

func newClusterPKI(dir string, addr net.IP, serviceAddr net.IP, now time.Time) (*clusterPKI, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making keys: %w", err)
	}
	p := &clusterPKI{dir: dir}
	var err error
	if p.cluster, err = newAuthority(dir, "ca", "kubernetes-ca", now); err != nil {
		return nil, err
	}
	if p.etcd, err = newAuthority(dir, "etcd-ca", "etcd-ca", now); err != nil {
		return nil, err
	}
	if p.frontProxy, err = newAuthority(dir, "front-proxy-ca", "front-proxy-ca", now); err != nil {
		return nil, err
	}
	loopback := net.IPv4(127, 0, 0, 1)
	kubernetes := []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	for _, i := range []struct {
		by *authority
		l  leaf
	}{
		{p.etcd, leaf{file: "etcd", name: "etcd", ips: []net.IP{loopback}, client: true}},
		{p.etcd, leaf{file: "apiserver-etcd", name: "kube-apiserver-etcd-client", client: true}},
		{p.cluster, leaf{file: "apiserver", name: "kube-apiserver", dns: kubernetes, ips: []net.IP{addr, serviceAddr}}},
		{p.cluster, leaf{file: "apiserver-kubelet", name: "kube-apiserver-kubelet-client", orgs: []string{"system:masters"}, client: true}},
		{p.frontProxy, leaf{file: "front-proxy", name: "front-proxy-client", client: true}},
	} {
		if _, _, err := i.by.issue(i.l); err != nil {
			return nil, err
		}
	}
	return p, p.serviceAccountKey()
}

// serviceAccountKey makes the pair that signs ServiceAccount tokens: it belongs to no authority.
func (p *clusterPKI) serviceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("making the ServiceAccount key: %w", err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("making the ServiceAccount key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("making the ServiceAccount key: %w", err)
	}
	return errors.Join(
		os.WriteFile(p.path("sa.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600),
		os.WriteFile(p.path("sa.pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600),
	)
}

func (p *clusterPKI) path(name string) string { return filepath.Join(p.dir, name) }
