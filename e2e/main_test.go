//go:build linux

package e2e

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

var shared = lab.Shared{Options: lab.ControlPlaneOptions{Audit: true}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// stepLimit bounds what a test waits for something that should take a second, and at worst takes the
// controller's look of each minute.
const stepLimit = 2 * time.Minute

// installation is the product in the package's control plane, with a policy in force.
type installation struct {
	cp           *lab.ControlPlane
	product      *product.Product
	root, signer testkit.Signer
	// balancer is where the API server finds the webhook; behind it is webhook alone, but for tests
	// that put replicas there.
	balancer   *harness.Balancer
	webhook    *product.Program
	at         string // where webhook answers
	controller *product.Program
	writer     *harness.Writer
	// beforePolicy is what /readyz answered while there was no policy.
	beforePolicy string
	// readyAfter is how long after it was stored the first policy was in force.
	readyAfter time.Duration
	// document is the policy in force, version its number.
	document string
	version  int
}

var (
	installOnce sync.Once
	installed   *installation
)

// install returns the one installation of the package.
func install(t *testing.T) *installation {
	t.Helper()
	cp := shared.ControlPlane(t)
	installOnce.Do(func() {
		i := &installation{cp: cp, root: testkit.NewSigner(t, "ed25519"), signer: testkit.NewSigner(t, "ed25519"), version: 1}
		i.document = policyDocument(t, i.version, i.signer)
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
		defer cancel()
		i.start(ctx, t)
		installed = i
	})
	if installed == nil {
		t.Fatal("the product is not installed; see the first test that failed")
	}
	return installed
}

func (i *installation) start(ctx context.Context, t *testing.T) {
	t.Helper()
	var err error
	i.product, err = product.Install(ctx, product.Options{
		Lab: shared.Lab(t), ControlPlane: i.cp, Roots: []byte(i.root.Line + "\n"), ClusterID: "e2e", HostNamespaces: []string{"pool"},
		UpstreamCRDs: product.UpstreamCRDs(t),
	})
	must(t, err)
	i.writer, err = harness.NewWriter(i.cp.RESTConfig())
	must(t, err)
	i.balancer, err = harness.NewBalancer(ctx, net.JoinHostPort(i.product.Addr().String(), "9443"))
	must(t, err)
	i.startWebhook(ctx, t)
	eventually(t, "the webhook to have looked for a policy", func() bool {
		_, i.beforePolicy = get(t, i.webhook.Health+"/readyz")
		return !strings.Contains(i.beforePolicy, "SnapshotUnavailable")
	})
	i.controller, err = i.product.StartController(ctx)
	must(t, err)
	file := testkit.WriteFile(t, t.TempDir(), "policy.json", i.trustPolicy(t, i.document, i.root))
	must(t, i.product.ApplyPolicy(ctx, file))
	stored := time.Now()
	must(t, i.webhook.Wait(ctx, "/readyz"))
	i.readyAfter = in(stored)
}

// withoutController stops the controller until the test ends, for what it would write itself.
func (i *installation) withoutController(t *testing.T) {
	t.Helper()
	must(t, i.controller.Stop())
	t.Cleanup(func() { i.startController(t) })
}

func (i *installation) startController(t *testing.T) {
	t.Helper()
	var err error
	i.controller, err = i.product.StartController(soon(t))
	must(t, err)
}

// startWebhook starts the one replica and puts it behind the balancer, alone.
func (i *installation) startWebhook(ctx context.Context, t *testing.T) {
	t.Helper()
	address, err := product.FreeAddress(i.product.Addr())
	must(t, err)
	started, err := i.product.StartWebhookAt(ctx, "hostwarrant-webhook", address)
	must(t, err)
	i.webhook, i.at = started, address
	i.balancer.Set(address)
}

// clusterEntry is what the tests' policy says of the cluster.
const clusterEntry = `{endpoints: ["` + ownEndpoint + `"]}`

// policyDocument is the tests' policy for this cluster, in force since yesterday.
func policyDocument(t *testing.T, version int, signers ...testkit.Signer) string {
	t.Helper()
	now := time.Now().UTC()
	document := testkit.PolicyDocument(signers...)
	for old, changed := range map[string]string{
		"version: 3": "version: " + strconv.Itoa(version),
		"any: {}":    "e2e: " + clusterEntry,
		`default: {classes: [default, small, large, bm], nodeNames: ["*"]}`: `farm: {classes: [default], nodeNames: ["farm-*"]}`,
		`pool: {classes: [default, small, large, bm], nodeNames: ["*"]}`:    `pool: {classes: [default, bm], nodeNames: ["pool-*"]}`,
		`"2026-11-29T00:00:00Z"`: `"` + now.Add(-24*time.Hour).Format(time.RFC3339) + `"`,
		`"2027-05-29T00:00:00Z"`: `"` + now.Add(90*24*time.Hour).Format(time.RFC3339) + `"`,
	} {
		if !strings.Contains(document, old) {
			t.Fatalf("the tests' policy does not hold %q", old)
		}
		document = strings.Replace(document, old, changed, 1)
	}
	return document
}

// trustPolicy is the JSON of a TrustPolicy signed by the given keys.
func (i *installation) trustPolicy(t *testing.T, document string, by ...testkit.Signer) []byte {
	t.Helper()
	signatures := []string{}
	for _, s := range by {
		signatures = append(signatures, testkit.Sign(t, s, trustpolicy.Namespace, []byte(document)))
	}
	return encode(t, object{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": object{"name": "cluster"},
		"spec": object{"document": document, "signatures": signatures},
	})
}

// object is a Kubernetes object as JSON.
type object = map[string]any

func encode(t *testing.T, o any) []byte {
	t.Helper()
	raw, err := json.Marshal(o)
	must(t, err)
	return raw
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
