//go:build linux

package e2e

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// demoRootPEM is the root key whose private half kubescape publishes.
const demoRootPEM = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEwIIkPTD5rGPP/bYmjRHxefAoCI1mwIiQMRA78xdS5rTT3zl06ygpY9D4A1zRrQjq2CkF5ciwO2kSJGe3h64jEw==
-----END PUBLIC KEY-----
`

// bare is a cluster with our manifests and no policy, no controller and nothing remembered, in which
// each test starts replicas of its own with an anchor and a policy file of its own.
type bare struct {
	product      *product.Product
	root, signer testkit.Signer
	ca           []byte
	replicas     int
}

func newBare(t *testing.T) *bare {
	t.Helper()
	ctx, l, cp := ownLab(t, lab.ControlPlaneOptions{})
	b := &bare{root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519")}
	var err error
	b.product, err = product.Install(ctx, product.Options{
		Lab: l, ControlPlane: cp, Roots: []byte(b.root.Line + "\n"), ClusterID: "e2e", HostNamespaces: []string{"pool"}, UpstreamCRDs: product.UpstreamCRDs(t),
	})
	must(t, err)
	b.start(t) // the first one makes the CA
	eventually(t, "the CA", func() bool {
		secret, err := cp.Client().CoreV1().Secrets(product.Namespace).Get(ctx, "hostwarrant-webhook-ca", metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			must(t, err)
		}
		b.ca = secret.Data["ca.crt"]
		return len(b.ca) > 0
	})
	// What the controller would do: a replica is ready when the API server trusts its certificate.
	patch := func(webhooks int) []byte {
		var operations []harness.PatchOperation
		for n := range webhooks {
			operations = append(operations, harness.PatchOperation{Op: "add", Path: fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", n), Value: b.ca})
		}
		return encode(t, operations)
	}
	registration := cp.Client().AdmissionregistrationV1()
	validating, err := registration.ValidatingWebhookConfigurations().Get(ctx, "hostwarrant", metav1.GetOptions{})
	must(t, err)
	_, err = registration.ValidatingWebhookConfigurations().Patch(ctx, "hostwarrant", types.JSONPatchType, patch(len(validating.Webhooks)), metav1.PatchOptions{})
	must(t, err)
	_, err = registration.MutatingWebhookConfigurations().Patch(ctx, "hostwarrant", types.JSONPatchType, patch(1), metav1.PatchOptions{})
	must(t, err)
	return b
}

// start starts a replica with more flags; the last of a kind counts.
func (b *bare) start(t *testing.T, flags ...string) *harness.Replica {
	t.Helper()
	address, err := product.FreeAddress(b.product.Addr())
	must(t, err)
	b.replicas++
	p, err := b.product.StartWebhookAt(t.Context(), fmt.Sprintf("webhook-%d", b.replicas), address, flags...)
	must(t, err)
	t.Cleanup(func() { must(t, p.Kill()) })
	return &harness.Replica{Program: p, Address: address}
}

// policyFlag writes a policy signed by the given keys and names it.
func (b *bare) policyFlag(t *testing.T, document string, by ...testkit.Signer) string {
	t.Helper()
	signed := []string{}
	for _, s := range by {
		signed = append(signed, testkit.Sign(t, s, trustpolicy.Namespace, []byte(document)))
	}
	return "--policy-file=" + testkit.WriteFile(t, t.TempDir(), "policy.json", encode(t, object{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": object{"name": "cluster"},
		"spec": object{"document": document, "signatures": signed},
	}))
}

func (b *bare) poster(t *testing.T, r *harness.Replica) *harness.Poster {
	t.Helper()
	var p *harness.Poster
	eventually(t, "the serving certificate", func() bool {
		var err error
		p, err = harness.NewPoster(r.Address, "hostwarrant-webhook.hostwarrant-system.svc", b.ca)
		must(t, err)
		_, err = p.Review(soon(t), "/validate", []byte("{}"))
		return err == nil || !strings.Contains(err.Error(), "posting to")
	})
	t.Cleanup(p.Close)
	return p
}

// demoAnchor is an anchor whose roots are the demo key and ours, either of which may sign.
func (b *bare) demoAnchor(t *testing.T) string {
	t.Helper()
	demo, err := trustpolicy.ParseRoots([]byte(demoRootPEM))
	must(t, err)
	line := demo.Keys[0].Type() + " " + base64.StdEncoding.EncodeToString(demo.Keys[0].Marshal())
	dir := t.TempDir()
	statement := fmt.Sprintf("hostwarrant-statement: v1 roots\nserial 1\nissued %d\ncluster e2e\nthreshold 1\nkey %s\nkey %s\nend\n", time.Now().Add(-time.Hour).Unix(), line, b.root.Line)
	testkit.WriteFile(t, dir, "roots", []byte(statement))
	testkit.WriteFile(t, dir, "cluster-id", []byte("e2e\n"))
	return dir
}

// TestNoPolicyThatCountsAdmitsNothing starts replicas with every kind of policy that must not count:
// none is ready, each says why, and each refuses also what the policy's signer signed.
func TestNoPolicyThatCountsAdmitsNothing(t *testing.T) {
	b := newBare(t)
	document := policyDocument(t, 1, b.signer)
	year := func(years int) string {
		now := time.Now().UTC().AddDate(years, 0, 0)
		edited := replace(t, time.Now().UTC().Add(-24*time.Hour).Format("2006-01-02T"), now.Add(-24*time.Hour).Format("2006-01-02T"))
		return replace(t, time.Now().UTC().Add(90*24*time.Hour).Format("2006-01-02T"), now.Add(90*24*time.Hour).Format("2006-01-02T"))(edited(document))
	}
	stranger := testkit.NewSigner(t, "ed25519")
	good := reviewOf(t, admissionv1.Create, profile(t, "p-state", scripts(), signatures(t, b.signer, scripts())), nil)
	for name, c := range map[string]struct {
		flags []string
		ready string // what /readyz says
	}{
		"none":                              {nil, "PolicyUnavailable: no trust policy was found"},
		"signed by nobody we know":          {[]string{b.policyFlag(t, document, stranger)}, "PolicyUnsigned"},
		"signed by a signer":                {[]string{b.policyFlag(t, document, b.signer)}, "PolicyUnsigned"},
		"not signed":                        {[]string{b.policyFlag(t, document)}, "PolicyUnsigned"},
		"for another cluster":               {[]string{b.policyFlag(t, replace(t, "e2e: ", "prod: ")(document), b.root)}, "PolicyWrongCluster"},
		"expired a year ago, or the clock":  {[]string{b.policyFlag(t, year(-1), b.root)}, "PolicyExpired"},
		"issued in a year, or the clock":    {[]string{b.policyFlag(t, year(1), b.root)}, "NotYetValid"},
		"a threshold that is nothing":       {[]string{b.policyFlag(t, replace(t, "thresholds: {}", "thresholds: {join: 0}")(document), b.root)}, "PolicyMalformed"},
		"a threshold beyond the signers":    {[]string{b.policyFlag(t, replace(t, "thresholds: {}", "thresholds: {join: 2}")(document), b.root)}, "PolicyMalformed"},
		"a field that is unknown":           {[]string{b.policyFlag(t, document+"allowEverything: true\n", b.root)}, "PolicyMalformed"},
		"another root file in the anchor":   {[]string{"--anchor=" + b.anchor(t, stranger), b.policyFlag(t, document, b.root)}, "PolicyUnsigned"},
		"under the demo root, mode enforce": {[]string{"--anchor=" + b.demoAnchor(t), b.policyFlag(t, document, b.root)}, "DemoRoot"},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.start(t, c.flags...)
			eventually(t, "the replica to say "+c.ready, func() bool {
				code, body := get(t, r.Health+"/readyz")
				return code == 503 && strings.Contains(body, c.ready)
			})
			p := b.poster(t, r)
			reason := "PolicyUnavailable"
			if c.ready == "PolicyExpired" {
				reason = c.ready // it is genuine, and said to be over
			}
			asks(t, p, good).deny(t, reason)
			asks(t, p, reviewOf(t, admissionv1.Create, host(t, "h-state", nil), nil)).deny(t, reason)
		})
	}
	t.Run("the good one is ready and admits", func(t *testing.T) {
		r := b.start(t, b.policyFlag(t, document, b.root))
		must(t, r.Wait(soon(t), "/readyz"))
		if a := asks(t, b.poster(t, r), good); !a.allowed {
			t.Error(a)
		}
	})
	t.Run("it expires while it is in force", func(t *testing.T) { b.expires(t, good) })
}

// anchor is an anchor of the given roots.
func (b *bare) anchor(t *testing.T, roots ...testkit.Signer) string {
	t.Helper()
	dir := t.TempDir()
	var lines strings.Builder
	for _, r := range roots {
		lines.WriteString(r.Line + "\n")
	}
	must(t, os.WriteFile(filepath.Join(dir, "roots"), []byte(lines.String()), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "cluster-id"), []byte("e2e\n"), 0o600))
	return dir
}

func (b *bare) expires(t *testing.T, good []byte) {
	ends := time.Now().UTC().Add(6 * time.Second).Truncate(time.Second)
	document := policyDocument(t, 1, b.signer)
	_, rest, ok := strings.Cut(document, "expires: ")
	if !ok {
		t.Fatal("no expiry")
	}
	old, _, _ := strings.Cut(rest, "\n")
	r := b.start(t, b.policyFlag(t, replace(t, old, `"`+ends.Format(time.RFC3339)+`"`)(document), b.root))
	must(t, r.Wait(soon(t), "/readyz"))
	p := b.poster(t, r)
	if a := asks(t, p, good); !a.allowed {
		t.Fatalf("before it expires: %v", a)
	}
	time.Sleep(time.Until(ends)) // nothing announces the end of a policy
	asks(t, p, good).deny(t, "PolicyExpired")
	if code, body := get(t, r.Health+"/readyz"); code != 503 || !strings.Contains(body, "PolicyExpired") {
		t.Errorf("/readyz: %d %s", code, body)
	}
}
