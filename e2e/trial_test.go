//go:build linux

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// times is how often a test does what it repeats: fewer where everything is to run in minutes, all
// of it with E2E_FULL=1 (make e2e-ha).
func times(few, all int) int {
	if os.Getenv("E2E_FULL") == "1" {
		return all
	}
	return few
}

// newPolicy puts a policy in force that trusts the given signers, after an edit of its document, and
// returns when the one replica has it.
func (i *installation) newPolicy(t *testing.T, edit func(string) string, signers ...testkit.Signer) {
	t.Helper()
	document := policyDocument(t, i.version+1, signers...)
	if edit != nil {
		document = edit(document)
	}
	i.offer(t, document)
	eventually(t, "the policy to be in force", func() bool { return policyVersion(t, i.webhook.Health) == i.version })
}

// offer applies a policy signed by the root, which must be taken.
func (i *installation) offer(t *testing.T, document string) {
	t.Helper()
	i.succeeds(t, i.trustPolicy(t, document, i.root), "apply", "--server-side", "--force-conflicts", "-f", "-")
	i.version++
	i.document = document
}

// usualPolicy puts the tests' policy in force again when the test ends.
func (i *installation) usualPolicy(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { i.newPolicy(t, nil, i.signer) })
}

// policyVersion is what /policyz says is in force, 0 for nothing.
func policyVersion(t *testing.T, health string) int {
	t.Helper()
	_, body := get(t, health+"/policyz")
	var status struct {
		InForce bool `json:"inForce"`
		Version int  `json:"version"`
	}
	if json.Unmarshal([]byte(body), &status) != nil || !status.InForce {
		return 0
	}
	return status.Version
}

// replace swaps texts of a document, each of which must be there.
func replace(t *testing.T, pairs ...string) func(string) string {
	t.Helper()
	return func(document string) string {
		for n := 0; n < len(pairs); n += 2 {
			if !strings.Contains(document, pairs[n]) {
				t.Fatalf("the tests' policy does not hold %q", pairs[n])
			}
			document = strings.Replace(document, pairs[n], pairs[n+1], 1)
		}
		return document
	}
}

// poster reaches a replica without the API server.
func (i *installation) poster(t *testing.T, address string) *harness.Poster {
	t.Helper()
	text := i.succeeds(t, nil, "get", "validatingwebhookconfiguration", "hostwarrant", "-o", "jsonpath={.webhooks[0].clientConfig.caBundle}").Stdout
	pem, err := base64.StdEncoding.DecodeString(text)
	must(t, err)
	p, err := harness.NewPoster(address, "hostwarrant-webhook.hostwarrant-system.svc", pem)
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

// reviewOf is an AdmissionReview about the JSON of an object; old may be nil.
func reviewOf(t *testing.T, operation admissionv1.Operation, raw, old []byte) []byte {
	t.Helper()
	subject := raw
	if subject == nil {
		subject = old
	}
	var named struct {
		APIVersion, Kind string
		Metadata         struct{ Name, Namespace string }
	}
	must(t, json.Unmarshal(subject, &named))
	group, version, _ := strings.Cut(named.APIVersion, "/")
	resource := strings.ToLower(named.Kind) + "s"
	if named.Kind == "SSHNodeClass" {
		resource = "sshnodeclasses"
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: types.UID("trial"), Operation: operation, Name: named.Metadata.Name, Namespace: named.Metadata.Namespace,
			Kind:     metav1.GroupVersionKind{Group: group, Version: version, Kind: named.Kind},
			Resource: metav1.GroupVersionResource{Group: group, Version: version, Resource: resource},
		},
	}
	if raw != nil {
		review.Request.Object = runtime.RawExtension{Raw: raw}
	}
	if old != nil {
		review.Request.OldObject = runtime.RawExtension{Raw: old}
	}
	return encode(t, review)
}

// asks posts a review and returns verdict, reason and message of the answer.
func asks(t *testing.T, p *harness.Poster, body []byte) answered {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	r, err := p.Review(ctx, "/validate", body)
	must(t, err)
	return answerOf(r)
}

// answered is an answer as tests compare it.
type answered struct {
	allowed         bool
	verdict, reason string
	version         int
	message         string
}

func answerOf(r *admissionv1.AdmissionResponse) answered {
	a := answered{allowed: r.Allowed, verdict: r.AuditAnnotations["verdict"], reason: r.AuditAnnotations["reason"]}
	if n, err := strconv.Atoi(r.AuditAnnotations["policy-version"]); err == nil {
		a.version = n
	}
	if r.Result != nil {
		a.message = r.Result.Message
	}
	return a
}

func (a answered) String() string {
	return fmt.Sprintf("allowed %v, verdict %q, reason %q, policy %d: %s", a.allowed, a.verdict, a.reason, a.version, a.message)
}

// deny wants a refusal for the given reason.
func (a answered) deny(t *testing.T, reason string) {
	t.Helper()
	if a.allowed || a.reason != reason && !strings.Contains(a.message, reason+": ") {
		t.Errorf("%v; want a denial with %s", a, reason)
	}
}

// soon is a context for one step.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	t.Cleanup(cancel)
	return ctx
}

// in says how long something took.
func in(since time.Time) time.Duration { return time.Since(since).Round(time.Millisecond) }

// The API server that nodes of the tests' cluster join, as the policy names it, and another.
const (
	ownEndpoint     = "https://10.0.0.5:6443"
	foreignEndpoint = "https://203.0.113.9:6443"
)

// nodeClass is the JSON of an SSHNodeClass with changes to its spec.
func nodeClass(t *testing.T, name string, changes object) []byte {
	t.Helper()
	spec := object{"joinProfileRef": object{"name": "p-of-" + name}, "cluster": object{"endpoint": ownEndpoint}, "hostSelector": object{}}
	maps.Copy(spec, changes)
	return encode(t, object{
		"apiVersion": "karpenter.dklesev.github.io/v1beta1", "kind": "SSHNodeClass", "metadata": object{"name": name}, "spec": spec,
	})
}

// hostRun is the JSON of a HostRun in namespace pool with changes to its spec.
func hostRun(t *testing.T, name string, changes object) []byte {
	t.Helper()
	spec := object{"hostRef": object{"name": "h-of-" + name}, "profileRef": object{"name": "p-of-" + name}, "phase": "join", "nodeName": "pool-" + name}
	maps.Copy(spec, changes)
	return encode(t, object{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostRun", "metadata": object{"name": name, "namespace": "pool"}, "spec": spec,
	})
}

// expiring stores a profile whose warrant ends within seconds, and returns when it has.
func (i *installation) expiring(t *testing.T, name string) []byte {
	t.Helper()
	ends := time.Now().Add(4 * time.Second).Truncate(time.Second)
	raw := warranted(t, i, name, func(w *warrant.Warrant) { w.NotAfter = ends.Unix() })
	i.succeeds(t, raw, "create", "-f", "-")
	i.remove(t, "sshjoinprofile", name)
	time.Sleep(time.Until(ends.Add(time.Second))) // nothing announces the end of a warrant
	return raw
}

// withMeta is the JSON of an object with metadata changed.
func withMeta(t *testing.T, raw []byte, changes object) []byte {
	t.Helper()
	var o object
	must(t, json.Unmarshal(raw, &o))
	meta, ok := o["metadata"].(object)
	if !ok {
		t.Fatalf("no metadata in %s", raw)
	}
	maps.Copy(meta, changes)
	return encode(t, o)
}
