package approver

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// TestAHostsKubeletIsApproved: asked, answered by the host, recorded, and only then approved.
func TestAHostsKubeletIsApproved(t *testing.T) {
	w := newWorld(t)
	w.start(w.csr("first", w.kubelet, nil))
	if result := w.reconcile("first"); result.RequeueAfter != 9*time.Minute-beforeTheEnd {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	nonce := w.stored().Status.Proof.Nonce
	w.want("first", "", "")
	if len(nonce) != 64 {
		t.Fatalf("the nonce is %q", nonce)
	}
	w.reconcile("first")
	if again := w.stored().Status.Proof.Nonce; again != nonce {
		t.Error("asked once more, by another nonce")
	}
	w.answer(nil, w.hostKey)
	w.reconcile("first")
	w.want("first", "Approved HostwarrantApproved: the host proved that SHA256:", "")
	if len(w.tokens.approved) != 1 || !strings.HasPrefix(w.tokens.approved[0], tokenID+" Approved: certificate request first (uid-of-first): ") {
		t.Errorf("recorded as %q", w.tokens.approved)
	}
	w.reconcile("first") // the event of its own approval
	if w.alarms("ForeignApproval") != 0 || len(w.tokens.ended) > 0 || len(w.tokens.approved) != 1 {
		t.Errorf("of its own approval it made %v, %q, %q", w.alarms("ForeignApproval"), w.tokens.ended, w.tokens.approved)
	}
	if e := w.event(); !strings.HasPrefix(e, "Normal Approved certificate request first") {
		t.Errorf("the event is %q", e)
	}
}

// TestAStolenTokenIsWorthless: under another name, and under the same one; only --proof=off lets the second through.
func TestAStolenTokenIsWorthless(t *testing.T) {
	t.Run("under another name", func(t *testing.T) {
		w := newWorld(t)
		w.run.Spec.NodeName = "pool-2"
		w.start(w.csr("theft", newKey(t), nil))
		w.reconcile("theft")
		w.denied("theft", "CSRMismatch", `the request is for "system:node:pool-1", the run for the node "pool-2"`)
	})
	t.Run("under the same name", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("theft", newKey(t), nil))
		w.reconcile("theft")
		w.answer(nil, w.hostKey)
		w.reconcile("theft")
		w.denied("theft", "ProofFailed", "the host's kubelet waits with SHA256:")
	})
	t.Run("before the host has a kubelet", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("theft", newKey(t), nil))
		w.reconcile("theft")
		w.answer(func(f *proof.Facts) { f.KubeletKey = "" }, w.hostKey)
		w.reconcile("theft")
		w.denied("theft", "ProofFailed", "but kubelet on the host holds no pending key: it has not asked")
	})
	t.Run("under the same name, with proofs switched off", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("theft", newKey(t), nil))
		w.a.WithoutProof = true
		w.reconcile("theft")
		w.want("theft", "Approved HostwarrantProofSkipped: nobody proved that SHA256:", "")
		if len(w.tokens.approved) != 1 || !strings.Contains(w.tokens.approved[0], " ProofSkipped: ") || w.stored().Status.Proof != nil {
			t.Errorf("recorded as %q, asked %v", w.tokens.approved, w.stored().Status.Proof)
		}
	})
	t.Run("under another name, with proofs switched off", func(t *testing.T) {
		w := newWorld(t)
		w.run.Spec.NodeName = "pool-2"
		w.start(w.csr("theft", newKey(t), nil))
		w.a.WithoutProof = true
		w.reconcile("theft")
		w.denied("theft", "CSRMismatch", "")
	})
}

// TestWhatARelayCannotProve: it brings answers and can make none.
func TestWhatARelayCannotProve(t *testing.T) {
	other := testkit.NewSigner(t, "ed25519")
	for name, tt := range map[string]struct {
		change func(*proof.Facts)
		by     *testkit.Signer
		says   string
	}{
		"by a key that the relay alone pins": {nil, &other, "which is not a key of this host"},
		"of another run":                     {func(f *proof.Facts) { f.RunUID = "11234567-89ab-cdef-0123-456789abcdef" }, nil, "the proof is for the run 11234567"},
		"of another time":                    {func(f *proof.Facts) { f.Nonce = strings.Repeat("0", 64) }, nil, "the proof is for another nonce"},
		"of another cluster":                 {func(f *proof.Facts) { f.Cluster = "prod-2" }, nil, "the host belongs to cluster prod-2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.csr("first", w.kubelet, nil))
			w.reconcile("first")
			by := w.hostKey
			if tt.by != nil {
				by = *tt.by
			}
			w.answer(tt.change, by)
			w.reconcile("first")
			w.denied("first", "ProofFailed", tt.says)
		})
	}
	t.Run("altered on the way", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", newKey(t), nil))
		w.reconcile("first")
		w.answer(nil, w.hostKey)
		w.change(func(s *v1alpha1.HostRunStatus) {
			s.Proof.Text = strings.Replace(s.Proof.Text, "SHA256:", "SHA256:A", 1)
		})
		w.reconcile("first")
		w.denied("first", "ProofFailed", "SignatureInvalid")
	})
	t.Run("half of it", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		w.answer(nil, w.hostKey)
		w.change(func(s *v1alpha1.HostRunStatus) { s.Proof.Signature = "" })
		w.reconcile("first")
		w.want("first", "", "")
	})
	t.Run("never", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		w.now = w.now.Add(9*time.Minute - beforeTheEnd - time.Nanosecond)
		if result := w.reconcile("first"); result.RequeueAfter != time.Second {
			t.Errorf("looks again after %s", result.RequeueAfter)
		}
		w.want("first", "", "")
		w.now = w.now.Add(time.Nanosecond)
		w.reconcile("first")
		w.denied("first", "ProofFailed", "the host pool/host-a was asked for a proof and did not answer in the token's time")
	})
	t.Run("never, and the approver was away", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		w.now = w.now.Add(time.Hour)
		w.reconcile("first")
		w.denied("first", "ProofFailed", "did not answer in the token's time")
	})
	t.Run("too late", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		w.answer(nil, w.hostKey)
		w.now = w.now.Add(9 * time.Minute)
		w.reconcile("first")
		w.denied("first", "CSRMismatch", "the time of the token is over")
	})
	t.Run("never, with proofs switched off meanwhile", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		w.a.WithoutProof = true
		w.now = w.now.Add(9*time.Minute - time.Nanosecond)
		w.reconcile("first")
		w.want("first", "Approved HostwarrantProofSkipped", "")
	})
}

// TestWhoseHostKeysCount: the ConfigMap's and the policy's, and where there is neither no proof counts.
func TestWhoseHostKeysCount(t *testing.T) {
	ca := testkit.NewSigner(t, "ed25519")
	withCA := func(w *world) {
		w.setPolicy(strings.Replace(testkit.PolicyDocument(w.signer), `pool: {`, `pool: {hostCA: "`+ca.Line+`", `, 1))
	}
	certified := func(w *world, address string) {
		w.answer(nil, w.hostKey)
		w.change(func(s *v1alpha1.HostRunStatus) {
			s.Proof.Signature = testkit.WithCertificate(t, s.Proof.Signature, hostCertificate(t, ca, w.hostKey, address))
		})
	}
	t.Run("none", func(t *testing.T) {
		w := newWorld(t)
		w.listed = nil
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		w.denied("first", "ProofFailed", "no key is known of the host pool/host-a")
	})
	t.Run("those of another host", func(t *testing.T) {
		w := newWorld(t)
		w.listed.Data = map[string]string{"pool.host-b": w.hostKey.Line, "other.host-a": w.hostKey.Line, "host-a": w.hostKey.Line}
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		w.denied("first", "ProofFailed", "no key is known")
	})
	t.Run("what is no key", func(t *testing.T) {
		w := newWorld(t)
		w.listed.Data["pool.host-a"] += "ssh-ed25519 x\n"
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		w.denied("first", "ProofFailed", "ConfigMap hostwarrant-host-keys, pool.host-a: Malformed")
	})
	t.Run("the namespace's CA", func(t *testing.T) {
		w := newWorld(t)
		w.listed = nil
		withCA(w)
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		certified(w, "10.0.0.7")
		w.reconcile("first")
		w.want("first", "Approved HostwarrantApproved", "")
	})
	t.Run("the namespace's CA, for another host", func(t *testing.T) {
		w := newWorld(t)
		w.listed = nil
		withCA(w)
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		certified(w, "10.0.0.8")
		w.reconcile("first")
		w.denied("first", "ProofFailed", "the host certificate is for other names")
	})
	t.Run("the CA of another namespace", func(t *testing.T) {
		w := newWorld(t)
		w.setPolicy(strings.Replace(testkit.PolicyDocument(w.signer), `default: {classes`, `default: {hostCA: "`+ca.Line+`", classes`, 1))
		w.listed = nil
		w.start(w.csr("first", w.kubelet, nil))
		w.reconcile("first")
		w.denied("first", "ProofFailed", "no key is known")
	})
}

// TestOnlyTheRequestOfTheRun: near-misses of the honest one, each denied before the host is asked.
func TestOnlyTheRequestOfTheRun(t *testing.T) {
	type csr = certificatesv1.CertificateSigningRequest
	for name, tt := range map[string]struct {
		change func(*csr)
		world  func(*world)
		reason string
		says   string
	}{
		"to serve":                    {func(c *csr) { c.Spec.Usages = append(c.Spec.Usages, certificatesv1.UsageServerAuth) }, nil, "CSRMismatch", "the usages are"},
		"outside of our group":        {func(c *csr) { c.Spec.Groups = []string{"system:bootstrappers"} }, nil, "CSRMismatch", "not in the group"},
		"before its token":            {func(c *csr) { c.CreationTimestamp = metav1.NewTime(testkit.Now().Add(-61 * time.Second)) }, nil, "CSRMismatch", "before its token"},
		"after its token":             {func(c *csr) { c.CreationTimestamp = metav1.NewTime(testkit.Now().Add(10 * time.Minute)) }, nil, "CSRMismatch", "is over since"},
		"when its time is over":       {nil, func(w *world) { w.tokens.token.Expires = w.now }, "CSRMismatch", "is over since"},
		"of a run that was made anew": {nil, func(w *world) { w.tokens.token.UID = "another" }, "CSRMismatch", "is gone"},
		"of a run that is gone":       {nil, func(w *world) { w.tokens.token.Run.Name = "run-0" }, "CSRMismatch", "is gone"},
		"of a run that failed": {nil, func(w *world) {
			w.run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionFalse, Reason: "ScriptFailed"}}
		}, "CSRMismatch", "is over, or joins nobody"},
		"of a run that was cancelled": {nil, func(w *world) { w.run.Spec.Cancel = true }, "CSRMismatch", "is over, or joins nobody"},
		"of a run being deleted": {nil, func(w *world) {
			w.run.DeletionTimestamp, w.run.Finalizers = new(metav1.NewTime(w.now)), []string{"hostwarrant.dev/token"}
		}, "CSRMismatch", "is over, or joins nobody"},
		"of a run that leaves":      {nil, func(w *world) { w.run.Spec.Phase = v1alpha1.HostRunLeave }, "CSRMismatch", "is over, or joins nobody"},
		"of a host that is gone":    {nil, func(w *world) { w.host = nil }, "HostNotFound", "no SSHHost"},
		"of a profile that is gone": {nil, func(w *world) { w.profile = nil }, "ProfileNotFound", "no SSHJoinProfile"},
		"of a profile that changed": {nil, func(w *world) {
			w.set(w.profile, "#!/bin/sh\n", "spec", "scripts", "join")
		}, "BytesChanged", ""},
		"of a host that runs anything": {nil, func(w *world) { w.set(w.host, "Raw", "spec", "execMode") }, "RawRefused", ""},
		"of a name that a node has": {nil, func(w *world) {
			w.more = append(w.more, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: corev1.NodeSpec{ProviderID: "kpssh://pool/host-b"}})
		}, "NodeNameTaken", ""},
		"of a namespace that the policy lists no more": {nil, func(w *world) {
			w.setPolicy(strings.Replace(testkit.PolicyDocument(w.signer), "pool: {", "pond: {", 1))
		}, "NamespaceRefused", ""},
		"of a name that the policy does not give": {nil, func(w *world) {
			w.setPolicy(strings.ReplaceAll(testkit.PolicyDocument(w.signer), `nodeNames: ["*"]`, `nodeNames: ["farm-*"]`))
		}, "NodeNameRefused", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tt.world != nil {
				tt.world(w)
			}
			w.start(w.csr("first", w.kubelet, tt.change))
			w.reconcile("first")
			w.denied("first", tt.reason, tt.says)
			if run := w.run; w.tokens.token == nil && run.DeletionTimestamp == nil && w.stored().Status.Proof != nil {
				t.Error("the host was asked")
			}
		})
	}
}

func TestAPolicyThatIsNotThereIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	policy := w.policy
	w.policy = nil
	w.start(w.csr("first", w.kubelet, nil))
	if result := w.reconcile("first"); result.RequeueAfter != policyAgain {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	w.want("first", "", "")
	if err := w.client.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	w.reconcile("first")
	if w.stored().Status.Proof == nil {
		t.Error("with the policy the host is not asked")
	}
}

// TestOneTokenOneKey: who comes second with another key is denied and cried about; the same key is the same kubelet.
func TestOneTokenOneKey(t *testing.T) {
	at := func(offset time.Duration) func(*certificatesv1.CertificateSigningRequest) {
		return func(c *certificatesv1.CertificateSigningRequest) {
			c.CreationTimestamp = metav1.NewTime(testkit.Now().Add(offset))
		}
	}
	t.Run("another key later", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, nil), w.csr("second", newKey(t), at(6*time.Second)))
		w.reconcile("first")
		w.want("first", "", "")
		w.reconcile("second")
		w.denied("second", "CSRMismatch", `another request, "first", used the token first`)
		if w.alarms("SecondRequest") != 1 {
			t.Errorf("%v alarms", w.alarms("SecondRequest"))
		}
		w.tokens.ended = nil
		w.reconcile("first") // its token is gone
		w.want("first", "Denied HostwarrantCSRMismatch: no run has the token hwab12", "")
	})
	t.Run("another key in the same second", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, nil), w.csr("second", newKey(t), nil))
		w.reconcile("first")
		w.denied("first", "CSRMismatch", `"second", used the token first`)
	})
	t.Run("the same key later", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, nil), w.csr("second", w.kubelet, at(6*time.Second)))
		w.reconcile("second")
		w.want("second", "", "")
		if w.stored().Status.Proof != nil || w.alarms("SecondRequest") != 0 {
			t.Error("a proof is asked for a copy, or a kubelet that asks again is taken for another")
		}
		w.reconcile("first")
		w.want("first", "", "")
		if w.stored().Status.Proof == nil {
			t.Error("the host was not asked")
		}
	})
	for name, c := range map[string]struct {
		copied string
		later  time.Duration
	}{
		"later": {"another", 7 * time.Second}, "in the same second": {"another", 5 * time.Second},
		"by a clock that went back": {"another", 4 * time.Second}, "by a name that sorts before": {"a", 5 * time.Second},
	} {
		t.Run("a copy of the kubelet's request "+name, func(t *testing.T) {
			w := newWorld(t)
			kubelets, other := w.csr("", w.kubelet, nil), w.csr(c.copied, w.kubelet, at(c.later))
			kubelets.Name, kubelets.UID = requestOf(kubelets).OwnName(), "uid-of-the-kubelet's"
			other.Spec.Request = kubelets.Spec.Request
			w.start(kubelets, other)
			w.reconcile(c.copied)
			w.reconcile(kubelets.Name)
			w.answer(nil, w.hostKey)
			w.reconcile(c.copied)
			w.want(c.copied, "", "")
			w.reconcile(kubelets.Name)
			w.want(kubelets.Name, "Approved HostwarrantApproved", "")
			w.reconcile(c.copied)
			w.want(c.copied, "", "")
			if len(w.tokens.ended) != 0 || len(w.tokens.approved) != 1 {
				t.Errorf("ended %q, approved %q", w.tokens.ended, w.tokens.approved)
			}
		})
	}
	t.Run("the approved request again, by another name", func(t *testing.T) {
		w := newWorld(t)
		first := w.csr("first", w.kubelet, nil)
		again := w.csr("again", w.kubelet, at(7*time.Second))
		again.Spec.Request = first.Spec.Request
		w.start(first, again)
		w.reconcile("first")
		w.answer(nil, w.hostKey)
		w.reconcile("first")
		w.want("first", "Approved HostwarrantApproved", "")
		w.reconcile("again")
		w.want("again", "", "")
		w.reconcile("first")
		if w.alarms("ForeignApproval") != 0 || len(w.tokens.approved) != 1 {
			t.Errorf("%v alarms, approved %q", w.alarms("ForeignApproval"), w.tokens.approved)
		}
	})
	t.Run("a request that comes first of its key when another was approved", func(t *testing.T) {
		w := newWorld(t)
		late := w.csr("", w.kubelet, at(7*time.Second))
		late.Name, late.UID = requestOf(late).OwnName(), "uid-of-the-late-one"
		w.start(w.csr("first", w.kubelet, nil), late)
		w.join(metav1.ConditionTrue, "Approved", "certificate request first (uid-of-first): the host proved")
		w.reconcile(late.Name)
		w.want(late.Name, "", "")
		if w.stored().Status.Proof != nil {
			t.Error("the host was asked again")
		}
	})
	t.Run("another key after the approval", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, nil), w.csr("second", newKey(t), at(7*time.Second)))
		w.join(metav1.ConditionTrue, "Approved", "certificate request first (uid-of-first): the host proved")
		w.reconcile("second")
		w.denied("second", "CSRMismatch", `"first", used the token first`)
		if w.alarms("SecondRequest") != 1 {
			t.Errorf("%v alarms", w.alarms("SecondRequest"))
		}
	})
	t.Run("another key with an earlier token of that id", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, nil), w.csr("old", newKey(t), at(-2*time.Minute)))
		w.reconcile("first")
		w.want("first", "", "")
	})
	t.Run("what is no request", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, at(6*time.Second)), w.csr("junk", newKey(t), func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Request = []byte("x") }))
		w.reconcile("first")
		w.denied("first", "CSRMismatch", `"junk", used the token first`)
	})
}

// TestARequestOrRunThatChangedMeanwhileIsLookedAtAgainSoon: nothing went wrong. Any other fault is one.
func TestARequestOrRunThatChangedMeanwhileIsLookedAtAgainSoon(t *testing.T) {
	away := errors.New("away")
	runs := schema.GroupResource{Resource: "hostruns"}
	cases := map[string]struct {
		fault, want error
	}{
		"it changed":                   {apierrors.NewConflict(runs, "join", away), nil},
		"it is gone":                   {apierrors.NewNotFound(runs, "join"), nil},
		"near miss: there's no answer": {away, away},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.csr("first", w.kubelet, nil))
			stored, ok := w.client.(client.WithWatch)
			if !ok {
				t.Fatalf("a %T", w.client)
			}
			w.a.Client = interceptor.NewClient(stored, interceptor.Funcs{
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return c.fault
				},
			})
			result, err := w.a.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "first"}})
			if !errors.Is(err, c.want) || c.want == nil && result.RequeueAfter != time.Second {
				t.Fatalf("%v, again after %s", err, result.RequeueAfter)
			}
			w.want("first", "", "")
		})
	}
}

// TestRequestsOfOthersAreNeverTouched: kubelets that renew, other tokens, and everybody else.
func TestRequestsOfOthersAreNeverTouched(t *testing.T) {
	for name, change := range map[string]func(*certificatesv1.CertificateSigningRequest){
		"a kubelet that renews": func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Username, c.Spec.Groups = "system:node:pool-1", []string{"system:nodes", "system:authenticated"}
		},
		"a kubelet's serving certificate": func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Username, c.Spec.Groups, c.Spec.SignerName = "system:node:pool-1", []string{"system:nodes"}, certificatesv1.KubeletServingSignerName
		},
		"another token": func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Username, c.Spec.Groups = "system:bootstrap:abcdef", []string{"system:bootstrappers"}
		},
		"another token with an id like ours": func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.Username, c.Spec.Groups = "system:bootstrap:hwzzzz", []string{"system:bootstrappers"}
		},
		"an administrator": func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Username, c.Spec.Groups = "admin", nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			csr := w.csr("theirs", newKey(t), change)
			w.start(csr)
			w.reconcile("theirs")
			w.want("theirs", "", "")
			approved := w.csr("approved", newKey(t), change)
			approved.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Reason: "AutoApproved"}}
			if name != "another token with an id like ours" && concerns(approved) {
				t.Error("it is looked at")
			}
			if w.alarms("ForeignApproval")+w.alarms("OtherSigner") != 0 || len(w.events.Events) > 0 {
				t.Error("something was cried about")
			}
		})
	}
	w := newWorld(t)
	w.start()
	w.reconcile("gone")
}

// TestATokenThatNobodyHasIsDenied: taken away, or put into our group by somebody else.
func TestATokenThatNobodyHasIsDenied(t *testing.T) {
	w := newWorld(t)
	w.start(w.csr("stray", newKey(t), func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Username = "system:bootstrap:abcdef" }))
	w.reconcile("stray")
	w.want("stray", "Denied HostwarrantCSRMismatch: no run has the token abcdef", "")
	if w.tokens.token == nil {
		t.Error("the token of another run was ended")
	}
}

// TestApprovalsBySomebodyElseAreAlarms: the token is ended, also where somebody writes in our name, or before we looked.
func TestApprovalsBySomebodyElseAreAlarms(t *testing.T) {
	approved := func(reason string) func(*certificatesv1.CertificateSigningRequest) {
		return func(c *certificatesv1.CertificateSigningRequest) {
			c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reason, Message: "by eve"}}
		}
	}
	for _, reason := range []string{"AutoApproved", "HostwarrantApproved"} {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, approved(reason)))
		w.join(metav1.ConditionTrue, "Approved", "certificate request first (uid-of-another): the host proved")
		w.reconcile("first")
		if len(w.tokens.ended) != 1 || !strings.HasPrefix(w.tokens.ended[0], tokenID+" ForeignApproval: certificate request first (uid-of-first): the request was approved by somebody else: ") {
			t.Errorf("%s: the token ended by %q", reason, w.tokens.ended)
		}
		w.reconcile("first") // the certificate was issued
		if w.alarms("ForeignApproval") != 1 {
			t.Errorf("%s: %v alarms", reason, w.alarms("ForeignApproval"))
		}
		if e := w.event(); !strings.HasPrefix(e, "Warning ForeignApproval ") {
			t.Errorf("%s: the event is %q", reason, e)
		}
	}
	t.Run("of a request that the run refused", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("first", w.kubelet, approved("HostwarrantApproved")))
		w.join(metav1.ConditionFalse, "ProofFailed", "certificate request first (uid-of-first): another key")
		w.reconcile("first")
		if w.alarms("ForeignApproval") != 1 || len(w.tokens.ended) != 1 {
			t.Errorf("%v alarms, ended %q", w.alarms("ForeignApproval"), w.tokens.ended)
		}
	})
	t.Run("of a token that is over", func(t *testing.T) {
		w := newWorld(t)
		w.tokens.token = nil
		w.start(w.csr("theirs", w.kubelet, approved("AutoApproved")), w.csr("ours", w.kubelet, approved("HostwarrantApproved")))
		w.reconcile("theirs")
		w.reconcile("ours")
		if w.alarms("ForeignApproval") != 1 {
			t.Errorf("%v alarms", w.alarms("ForeignApproval"))
		}
	})
	t.Run("for another signer", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.csr("other", w.kubelet, func(c *certificatesv1.CertificateSigningRequest) {
			c.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
		}))
		w.reconcile("other")
		w.reconcile("other")
		w.want("other", "", tokenID+" OtherSigner: ")
		if w.alarms("OtherSigner") != 1 {
			t.Errorf("%v alarms", w.alarms("OtherSigner"))
		}
	})
}

// TestInterruptedDenialsAreCarriedOut: killed between the denial and the end of the token.
func TestInterruptedDenialsAreCarriedOut(t *testing.T) {
	w := newWorld(t)
	w.start(w.csr("first", w.kubelet, func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Usages = nil }))
	w.tokens.endErr = errors.New("the API server is away")
	w.again("first", w.tokens.endErr)
	w.tokens.endErr = nil
	w.reconcile("first")
	w.denied("first", "CSRMismatch", "the usages are")
	w.reconcile("first")
	if len(w.tokens.ended) != 1 {
		t.Errorf("ended %q", w.tokens.ended)
	}
	if got := w.settled("first"); strings.Count(got, "Denied ") != 1 {
		t.Errorf("denied once more: %q", got)
	}
}

// TestADenialInAnyWordsEndsTheToken: somebody else's words become no reason, which the API server might
// refuse, and no second line.
func TestADenialInAnyWordsEndsTheToken(t *testing.T) {
	const record = ": certificate request first (uid-of-first): "
	for said, want := range map[string]string{
		"":                       `ForeignDenial` + record + `the request was denied by somebody else: "", "no\nALARM: x"`,
		"Denied by policy":       `ForeignDenial` + record + `the request was denied by somebody else: "Denied by policy", "no\nALARM: x"`,
		"a\nb":                   `ForeignDenial` + record + `the request was denied by somebody else: "a\nb", "no\nALARM: x"`,
		"Hostwarrant":            `ForeignDenial` + record + `the request was denied by somebody else: "Hostwarrant", "no\nALARM: x"`,
		"HostwarrantNo way":      `ForeignDenial` + record + `the request was denied by somebody else: "HostwarrantNo way", "no\nALARM: x"`,
		"HostwarrantCSRMismatch": `CSRMismatch` + record + `no\nALARM: x`,
	} {
		t.Run(said, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.csr("first", w.kubelet, func(c *certificatesv1.CertificateSigningRequest) {
				c.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: said, Message: "no\nALARM: x"}}
			}))
			w.reconcile("first")
			if got := strings.Join(w.tokens.ended, "; "); got != tokenID+" "+want {
				t.Errorf("ended by %q, want %q", got, tokenID+" "+want)
			}
		})
	}
}

// readThen is what an approver reads of a run, before somebody else writes it.
type readThen struct {
	client.Reader
	write func()
}

func (r *readThen) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, o, opts...)
	if _, isRun := o.(*v1alpha1.HostRun); isRun && r.write != nil {
		r.write()
		r.write = nil
	}
	return err
}

// TestOfTwoQuestionsTheFirstStays: the next minter asked, while this one was paused.
func TestOfTwoQuestionsTheFirstStays(t *testing.T) {
	w := newWorld(t)
	w.start(w.csr("first", w.kubelet, nil))
	nonce := strings.Repeat("0", 64)
	w.a.Objects.Reader = &readThen{w.client, func() {
		w.change(func(s *v1alpha1.HostRunStatus) { s.Proof = &v1alpha1.HostRunProof{Nonce: nonce} })
	}}
	if result := w.reconcile("first"); result.RequeueAfter != time.Second {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	if got := w.stored().Status.Proof.Nonce; got != nonce {
		t.Errorf("the nonce is %s", got)
	}
	w.answer(nil, w.hostKey)
	w.reconcile("first")
	w.want("first", "Approved HostwarrantApproved", "")
}

// TestAMinterThatDoesNotKnowYetIsAskedAgain: after a start nothing is denied for a token that is not taken over yet.
func TestAMinterThatDoesNotKnowYetIsAskedAgain(t *testing.T) {
	w := newWorld(t)
	w.start(w.csr("first", w.kubelet, nil))
	w.tokens.err = errors.New("not yet")
	w.again("first", w.tokens.err)
	w.want("first", "", "")
}

// TestAnAnswerWakesItsRequest: and a change of something else does not.
func TestAnAnswerWakesItsRequest(t *testing.T) {
	w := newWorld(t)
	other := w.csr("other", newKey(t), func(c *certificatesv1.CertificateSigningRequest) { c.Spec.Username = "system:bootstrap:hwzzzz" })
	w.start(w.csr("first", w.kubelet, nil), other)
	requests := w.a.requestsOf(t.Context(), w.run)
	if len(requests) != 1 || requests[0].Name != "first" {
		t.Errorf("wakes %v", requests)
	}
	if more := w.a.requestsOf(t.Context(), &v1alpha1.HostRun{}); more != nil {
		t.Errorf("a run without a token wakes %v", more)
	}
	answered := w.run.DeepCopy()
	answered.Status.Proof = &v1alpha1.HostRunProof{Nonce: "n", Text: "t"}
	cancelled := w.run.DeepCopy()
	cancelled.Spec.Cancel = true
	for name, tt := range map[string]struct {
		old, new client.Object
		want     bool
	}{"an answer": {w.run, answered, true}, "a cancel": {w.run, cancelled, false}, "nothing": {answered, answered, false}} {
		if got := proofChanged().Update(event.UpdateEvent{ObjectOld: tt.old, ObjectNew: tt.new}); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A request may have any name: what of it could steer a terminal is shown as what it is, and is still the request's.
func TestANameThatSteersTerminalsIsTheRequestsOwn(t *testing.T) {
	w := newWorld(t)
	const name = "a\u202eb\n\x1b[2Jé"
	w.start(w.csr(name, w.kubelet, nil))
	w.reconcile(name)
	w.answer(nil, w.hostKey)
	w.reconcile(name)
	w.want(name, "Approved HostwarrantApproved", "")
	if len(w.tokens.approved) != 1 || !strings.Contains(w.tokens.approved[0], `certificate request a\u202eb\n\x1b[2Jé (uid-of-`) {
		t.Errorf("recorded %q", w.tokens.approved)
	}
	w.reconcile(name) // and looks at what it has approved
	if n := w.alarms("ForeignApproval"); n != 0 || len(w.tokens.ended) != 0 {
		t.Errorf("%v alarms, ended %q", n, w.tokens.ended)
	}
}
