package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

const (
	namespace = "bench"
	bundled   = "bench-bundle"
)

// signer signs fragments.
type signer struct {
	key         *ecdsa.PrivateKey
	certificate []byte
	fingerprint string
}

func newSigner() (*signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "local-key"}, NotBefore: time.Now(), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	fingerprint, err := fragment.Fingerprint(&key.PublicKey)
	if err != nil {
		return nil, err
	}
	return &signer{key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), fingerprint}, nil
}

// trusted is a policy that lets the signer sign for each class.
func (s *signer) trusted() verify.Snapshot {
	now := time.Now()
	all := trustpolicy.FragmentClass{Signers: []string{s.fingerprint}, AllowedSpecPaths: []string{"*"}}
	return verify.Snapshot{Now: now, Policy: &trustpolicy.Policy{
		Digest: "sha256:bench", Expires: now.Add(time.Hour),
		FragmentClasses: map[string]trustpolicy.FragmentClass{"base": all, "admission": all, "overlay": all},
	}}
}

// carriers are n stored fragments of three classes, as small as those that are published.
func (s *signer) carriers(n int) ([]*fragment.Object, error) {
	all := make([]*fragment.Object, n)
	for i := range all {
		o, err := s.carrier(i)
		if err != nil {
			return nil, err
		}
		all[i] = o
	}
	return all, nil
}

func (s *signer) carrier(i int) (*fragment.Object, error) {
	o := &fragment.Object{Spec: specOf(i)}
	o.APIVersion, o.Kind = fragment.APIVersionOf(fragment.KindContainerProfile), fragment.KindContainerProfile
	o.Namespace, o.Name = namespace, fmt.Sprintf("fragment-%05d", i)
	o.Labels = map[string]string{
		fragment.LabelBundle: bundled, fragment.LabelClass: []string{"base", "admission", "overlay"}[i%3], fragment.LabelVersion: "1",
	}
	content, err := fragment.Content(o)
	if err != nil {
		return nil, err
	}
	digest, err := fragment.Digest(content)
	if err != nil {
		return nil, err
	}
	message := sha256.Sum256([]byte(digest))
	signature, err := ecdsa.SignASN1(rand.Reader, s.key, message[:])
	if err != nil {
		return nil, err
	}
	o.Annotations = fragment.Annotations(content, s.certificate, signature, true, time.Now())
	return o, nil
}

// specOf has something of its own, and something that other fragments have too.
func specOf(i int) json.RawMessage {
	return fmt.Appendf(nil, `{"architectures":["amd64"],"capabilities":null,"execs":[{"path":"/usr/bin/tool-%05d"},{"path":"/bin/sh"}],"opens":null,`+
		`"syscalls":["read","write","close"],"seccompProfile":{"spec":{"defaultAction":""}},"endpoints":null,"imageID":"","imageTag":"","rulePolicies":{},`+
		`"identifiedCallStacks":null,"ingress":null,"egress":[{"identifier":"peer-%d","type":"external","dns":"peer-%d.example","dnsNames":null,"ports":null,`+
		`"podSelector":null,"namespaceSelector":null,"ipAddress":""}]}`, i, i%100, i%100)
}
