package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// policies is a cluster that takes a second to answer which trust policy is stored.
type policies struct {
	t      *testing.T
	source *PolicySource
	stored *unstructured.Unstructured
	reads  int
	err    error
}

func newPolicies(t *testing.T, root testkit.Signer) *policies {
	t.Helper()
	p := &policies{t: t}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			u, ok := o.(*unstructured.Unstructured)
			if !ok {
				return c.Get(ctx, key, o, opts...)
			}
			p.reads++
			err := p.err
			p.stored.DeepCopyInto(u)
			time.Sleep(time.Second)
			return err
		},
	})
	anchor, err := inforce.ParseAnchor([]byte(root.Line), []byte(trustpolicy.AnyCluster))
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	p.source = NewPolicySource(reader, anchor, metrics, logr.Discard())
	return p
}

// policyOf is the stored policy of a version.
func policyOf(t *testing.T, root, signer testkit.Signer, version int) *unstructured.Unstructured {
	t.Helper()
	document := strings.Replace(testkit.PolicyDocument(signer), "version: 3", fmt.Sprint("version: ", version), 1)
	u := NewObject(object.GroupHostwarrant, "v1alpha1", object.KindTrustPolicy)
	u.SetName(object.TrustPolicyName)
	u.Object["spec"] = map[string]any{"document": document, "signatures": []any{testkit.Sign(t, root, trustpolicy.Namespace, []byte(document))}}
	return u
}

// ask has so many judge by the policy, and gives by which version. It returns when all wait.
func (p *policies) ask(n int) <-chan string {
	p.t.Helper()
	answers := make(chan string, n)
	for range n {
		go func() {
			s, err := p.source.Snapshot(p.t.Context(), testkit.Now())
			if err != nil {
				answers <- err.Error()
				return
			}
			answers <- fmt.Sprint(s.Policy.Version)
		}()
	}
	synctest.Wait()
	return answers
}

func (p *policies) want(answers <-chan string, want string) {
	p.t.Helper()
	for range cap(answers) {
		if got := <-answers; got != want {
			p.t.Errorf("%s; want %s", got, want)
		}
	}
}

// Those who ask at once share a look at what is stored, and nobody is given one that began before they asked:
// what was revoked by then is revoked for them.
func TestAPolicyIsReadAfterWhoJudgesByItAsked(t *testing.T) {
	root, signer := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	three, four := policyOf(t, root, signer, 3), policyOf(t, root, signer, 4)
	synctest.Test(t, func(t *testing.T) {
		p := newPolicies(t, root)
		p.stored = three
		before := p.ask(1)
		p.stored = four
		after := p.ask(50)
		p.want(before, "3")
		p.want(after, "4")
		if p.reads != 2 {
			t.Errorf("the policy was read %d times", p.reads)
		}
		synctest.Wait()
		p.err = errors.New("away")
		p.want(p.ask(3), "reading the trust policy: away")
		p.err = nil
		p.want(p.ask(3), "4")
	})
}
