package approver

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/ssh"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/internal/kubeletcsr"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/relay/hostkeys"
	"github.com/hostwarrant/hostwarrant/relay/judge"
	"github.com/hostwarrant/hostwarrant/testkit"
	"github.com/hostwarrant/hostwarrant/testkit/cluster"
)

const (
	tokenID = "hwab12"
	runUID  = "01234567-89ab-cdef-0123-456789abcdef"
	node    = "pool-1"
)

var errNotRecorded = errors.New("nothing was recorded")

// fakeTokens is a fake: the minter's book with one token.
type fakeTokens struct {
	w        *world
	token    *Token
	err      error
	endErr   error
	approved []string
	ended    []string
}

func (f *fakeTokens) Holder(_ context.Context, id string) (Token, bool, error) {
	if f.err != nil || f.token == nil || id != tokenID {
		return Token{}, false, f.err
	}
	return *f.token, true, nil
}

// Approved, as the minter, records nothing of a token that is over or for a run that said something else.
func (f *fakeTokens) Approved(_ context.Context, id, reason, message string) error {
	if f.token == nil {
		return errNotRecorded
	}
	if c := meta.FindStatusCondition(f.w.stored().Status.Conditions, v1alpha1.ConditionJoined); c != nil && c.Status != metav1.ConditionUnknown {
		if c.Status == metav1.ConditionTrue && c.Message == message {
			return nil
		}
		return errNotRecorded
	}
	f.approved = append(f.approved, id+" "+reason+": "+message)
	f.w.join(metav1.ConditionTrue, reason, message)
	return nil
}

func (f *fakeTokens) End(_ context.Context, id, reason, message string) error {
	if f.endErr != nil {
		return f.endErr
	}
	f.ended = append(f.ended, id+" "+reason+": "+message)
	f.token = nil
	return nil
}

// world is a cluster with one host, whose run has a token.
type world struct {
	t      *testing.T
	a      *Approver
	tokens *fakeTokens
	client client.Client
	now    time.Time
	events *events.FakeRecorder

	registry *prometheus.Registry
	root     testkit.Signer
	signer   testkit.Signer
	hostKey  testkit.Signer
	kubelet  crypto.Signer

	host, profile, policy *unstructured.Unstructured
	listed                *corev1.ConfigMap
	run                   *v1alpha1.HostRun
	more                  []client.Object
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, now: testkit.Now(), events: events.NewFakeRecorder(100), kubelet: newKey(t)}
	w.root, w.signer, w.hostKey = testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	w.host = cluster.Host("host-a", w.signer.Line)
	w.profile = judge.NewObject(object.GroupKPSSH, judge.KPSSHVersion, object.KindJoinProfile)
	w.profile.SetName("tls-bootstrap")
	scripts, signatures := map[string]any{}, map[string]any{}
	for _, phase := range script.Phases() {
		text := "#!/usr/bin/env bash\nset -eu\necho " + string(phase) + "\n"
		scripts[string(phase)], signatures[string(phase)] = text, sign(t, w.signer, script.Namespace, []byte(text))
	}
	w.profile.Object["spec"] = map[string]any{"version": "1", "scripts": scripts, "signatures": signatures}
	w.setPolicy(testkit.PolicyDocument(w.signer))
	w.listed = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: hostkeys.Namespace, Name: hostkeys.ConfigMap},
		Data:       map[string]string{"pool.host-a": "# of the machine room\n" + w.hostKey.Line + " a comment\n"},
	}
	w.run = &v1alpha1.HostRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "pool", Name: "run-1", UID: runUID, Generation: 1, CreationTimestamp: metav1.NewTime(w.now)},
		Spec: v1alpha1.HostRunSpec{
			HostRef: v1alpha1.ObjectRef{Name: "host-a"}, ProfileRef: v1alpha1.ObjectRef{Name: "tls-bootstrap"}, Phase: v1alpha1.HostRunJoin, NodeName: node,
		},
		Status: v1alpha1.HostRunStatus{TokenID: tokenID},
	}
	w.tokens = &fakeTokens{w: w, token: &Token{Run: client.ObjectKeyFromObject(w.run), UID: runUID, Minted: w.now, Expires: w.now.Add(9 * time.Minute)}}
	return w
}

// sign signs without ssh-keygen's second opinion, which other tests ask for: there are many worlds here.
func sign(t *testing.T, by testkit.Signer, namespace string, text []byte) string {
	t.Helper()
	armored, err := sshsig.Sign(rand.Reader, by.Signer, namespace, text)
	if err != nil {
		t.Fatal(err)
	}
	return string(armored)
}

func newKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (w *world) setPolicy(document string) {
	w.policy = cluster.TrustPolicy(document, sign(w.t, w.root, trustpolicy.Namespace, []byte(document)))
}

// csr is the request of a kubelet, made with the token five seconds after it was minted.
func (w *world) csr(name string, key crypto.Signer, change func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
	w.t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		w.t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(w.now.Add(5 * time.Second))},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: kubeletcsr.SignerName,
			Username: "system:bootstrap:" + tokenID, Groups: []string{"system:bootstrappers", kubeletcsr.Group, "system:authenticated"},
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	if change != nil {
		change(csr)
	}
	return csr
}

// start stores the objects, nil ones left out.
func (w *world) start(requests ...*certificatesv1.CertificateSigningRequest) {
	w.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, corev1.AddToScheme, certificatesv1.AddToScheme} {
		if err := add(scheme); err != nil {
			w.t.Fatal(err)
		}
	}
	b := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&v1alpha1.HostRun{}, judge.NodeNames, judge.NodeNameOf).WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithStatusSubresource(&v1alpha1.HostRun{}, &certificatesv1.CertificateSigningRequest{})
	for _, o := range []*unstructured.Unstructured{w.host, w.profile, w.policy} {
		if o != nil {
			b = b.WithObjects(o)
		}
	}
	if w.listed != nil {
		b = b.WithObjects(w.listed)
	}
	if w.run != nil {
		b = b.WithObjects(w.run)
	}
	for _, csr := range requests {
		b = b.WithObjects(csr)
	}
	w.client = b.WithObjects(w.more...).Build()
	w.registry = prometheus.NewRegistry()
	counts, err := NewMetrics(w.registry)
	if err != nil {
		w.t.Fatal(err)
	}
	trusted, err := judge.NewMetrics(w.registry)
	if err != nil {
		w.t.Fatal(err)
	}
	anchor, err := inforce.ParseAnchor([]byte(w.root.Line), []byte(trustpolicy.AnyCluster))
	if err != nil {
		w.t.Fatal(err)
	}
	w.a = &Approver{
		Client: w.client, Objects: judge.Objects{Reader: w.client, Runs: w.client}, Policy: judge.NewPolicySource(w.client, anchor, trusted, logr.Discard()),
		Tokens: w.tokens, ClusterID: "prod-1", Metrics: counts, Events: w.events, Now: func() time.Time { return w.now }, Rand: rand.Reader,
	}
}

func (w *world) reconcile(name string) ctrl.Result {
	w.t.Helper()
	result, err := w.a.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// again reconciles a request that is expected to fail.
func (w *world) again(name string, want error) {
	w.t.Helper()
	if _, err := w.a.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}); !errors.Is(err, want) {
		w.t.Errorf("got %v, want %v", err, want)
	}
}

// set changes a field of a stored object.
func (w *world) set(o *unstructured.Unstructured, value string, field ...string) {
	w.t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, field...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stored() *v1alpha1.HostRun {
	w.t.Helper()
	var run v1alpha1.HostRun
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(w.run), &run); err != nil {
		w.t.Fatal(err)
	}
	return &run
}

// change writes the stored run's status.
func (w *world) change(with func(*v1alpha1.HostRunStatus)) {
	w.t.Helper()
	run := w.stored()
	with(&run.Status)
	if err := w.client.Status().Update(w.t.Context(), run); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) join(status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	w.change(func(s *v1alpha1.HostRunStatus) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: v1alpha1.ConditionJoined, Status: status, Reason: reason, Message: message})
	})
}

// settled are the conditions of a stored request, "Type reason: message" each.
func (w *world) settled(name string) string {
	w.t.Helper()
	var csr certificatesv1.CertificateSigningRequest
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &csr); err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, c := range csr.Status.Conditions {
		all = append(all, string(c.Type)+" "+c.Reason+": "+c.Message)
	}
	return strings.Join(all, "; ")
}

// event is the next event, "" where there is none.
func (w *world) event() string {
	select {
	case e := <-w.events.Events:
		return e
	default:
		return ""
	}
}

// want compares what became of a request, and of its token.
func (w *world) want(name, condition, ended string) {
	w.t.Helper()
	if got := w.settled(name); condition == "" && got != "" || !strings.HasPrefix(got, condition) {
		w.t.Errorf("the request is %q, want %q", got, condition)
	}
	if got := strings.Join(w.tokens.ended, "; "); ended == "" && got != "" || !strings.HasPrefix(got, ended) {
		w.t.Errorf("the token ended by %q, want %q", got, ended)
	}
}

// denied is the whole of what happens where a request is refused.
func (w *world) denied(name, reason, says string) {
	w.t.Helper()
	w.want(name, "Denied Hostwarrant"+reason+": ", tokenID+" "+reason+": certificate request "+name)
	if got := w.settled(name); !strings.Contains(got, says) {
		w.t.Errorf("the request is %q, want one that says %q", got, says)
	}
	if len(w.tokens.approved) > 0 {
		w.t.Errorf("it was approved as well: %q", w.tokens.approved)
	}
}

// alarms is the number of alarms of a kind.
func (w *world) alarms(kind string) float64 {
	w.t.Helper()
	families, err := w.registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "hostwarrant_join_alarms_total" && m.GetLabel()[0].GetValue() == kind {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// answer is the relay: it brings what a host signed of the question that is asked.
func (w *world) answer(change func(*proof.Facts), by testkit.Signer) {
	w.t.Helper()
	w.change(func(s *v1alpha1.HostRunStatus) {
		if s.Proof == nil {
			w.t.Fatal("nothing was asked")
		}
		public, err := ssh.NewPublicKey(w.kubelet.Public())
		if err != nil {
			w.t.Fatal(err)
		}
		f := &proof.Facts{
			Cluster: "prod-1", RunUID: runUID, Nonce: s.Proof.Nonce, BootID: "63b6dfb6-deb7-461a-8897-8f68ba802974", Time: w.now.Unix(), KubeletKey: ssh.FingerprintSHA256(public),
		}
		if change != nil {
			change(f)
		}
		s.Proof.Text = string(f.Text())
		s.Proof.Signature = sign(w.t, by, proof.Namespace, f.Text())
	})
}
