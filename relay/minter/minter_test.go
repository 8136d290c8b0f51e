package minter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/relay/token"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const (
	isTrue    = metav1.ConditionTrue
	isFalse   = metav1.ConditionFalse
	isUnknown = metav1.ConditionUnknown
)

func nodeOf(w *world, name, providerID string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(w.now)},
		Spec:       corev1.NodeSpec{ProviderID: providerID},
	}
}

func TestARunGetsOneToken(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 1))
	w.reconcile("r")
	id := w.wantToken("r")
	w.reconcile("r")
	w.restart()
	w.reconcile("r")
	if again := w.wantToken("r"); again != id || len(w.created) != 2 {
		t.Fatalf("token %s, then %s; %d Secrets were made", id, again, len(w.created))
	}
	s := w.created[types.NamespacedName{Namespace: "kube-system", Name: "bootstrap-token-" + id}]
	if end := string(s.Data["expiration"]); end != w.now.Add(token.Life).UTC().Format(time.RFC3339) {
		t.Errorf("ends %s", end)
	}
	status := fmt.Sprint(w.get("r").Status)
	if secret := string(s.Data["token-secret"]); len(secret) != 16 || strings.Contains(status, secret) {
		t.Error("the status holds the token's secret half")
	}
	if len(w.asked) != 2 {
		t.Fatalf("%d SubjectAccessReviews", len(w.asked))
	}
	for i, subresource := range []string{"nodeclient", "selfnodeclient"} {
		got := w.asked[i]
		a := got.ResourceAttributes
		if !token.IsID(strings.TrimPrefix(got.User, "system:bootstrap:")) || strings.Join(got.Groups, " ") != "system:bootstrappers system:bootstrappers:hostwarrant system:authenticated" ||
			a.Group != "certificates.k8s.io" || a.Resource != "certificatesigningrequests" || a.Subresource != subresource || a.Verb != "create" || a.Version != "*" {
			t.Errorf("asked for %+v %+v", got, a)
		}
	}
	if w.metric("hostwarrant_tokens_living") != 1 {
		t.Error("hostwarrant_tokens_living")
	}
}

// What ends a token, and its near miss.
func TestWhenATokenIsOver(t *testing.T) {
	cases := map[string]struct {
		change func(w *world)
		over   bool
		reason string
		status metav1.ConditionStatus
	}{
		"the node registers":            {func(w *world) { w.must(w.client.Create(w.t.Context(), nodeOf(w, "pool-1", "kpssh://pool/host-a"))) }, true, token.NodeRegistered, isTrue},
		"near miss: as another host's":  {func(w *world) { w.must(w.client.Create(w.t.Context(), nodeOf(w, "pool-1", "kpssh://pool/host-b"))) }, false, token.Issued, isUnknown},
		"near miss: under another name": {func(w *world) { w.must(w.client.Create(w.t.Context(), nodeOf(w, "pool-2", "kpssh://pool/host-a"))) }, false, token.Issued, isUnknown},
		"the run succeeds":              {func(w *world) { w.becomes("r", v1alpha1.ConditionSucceeded, isTrue, "Succeeded") }, true, token.RunEnded, isFalse},
		"the run fails":                 {func(w *world) { w.becomes("r", v1alpha1.ConditionSucceeded, isFalse, "ScriptFailed") }, true, token.RunEnded, isFalse},
		"near miss: the run is sent":    {func(w *world) { w.becomes("r", v1alpha1.ConditionSucceeded, isUnknown, "Sending") }, false, token.Issued, isUnknown},
		"its time is over, and it was sent": {func(w *world) {
			w.becomes("r", v1alpha1.ConditionDelivered, isUnknown, "Sending")
			w.now = w.now.Add(token.Life)
		}, true, token.Expired, isFalse},
		"its time is over, and its host was asked for a proof": {func(w *world) {
			w.becomes("r", v1alpha1.ConditionDelivered, isUnknown, "Sending")
			w.change("r", func(run *v1alpha1.HostRun) { run.Status.Proof = &v1alpha1.HostRunProof{Nonce: "n"} })
			w.now = w.now.Add(token.Life)
		}, true, "ProofFailed", isFalse},
		"its time is over, and its host gave one": {func(w *world) {
			w.becomes("r", v1alpha1.ConditionDelivered, isUnknown, "Sending")
			w.change("r", func(run *v1alpha1.HostRun) {
				run.Status.Proof = &v1alpha1.HostRunProof{Nonce: "n", Text: "t", Signature: "s"}
			})
			w.now = w.now.Add(token.Life)
		}, true, token.Expired, isFalse},
		"near miss: its time is nearly over": {func(w *world) { w.now = w.now.Add(token.Life - time.Second) }, false, token.Issued, isUnknown},
		"the approver ends it": {func(w *world) {
			w.must(w.m.End(w.t.Context(), w.get("r").Status.TokenID, "CSRMismatch", "another name"))
		}, true, "CSRMismatch", isFalse},
		"near miss: it ends another": {func(w *world) { w.must(w.m.End(w.t.Context(), "hw0000", "CSRMismatch", "another name")) }, false, token.Issued, isUnknown},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.run("r", "host-a", "pool-1", 0))
			w.reconcile("r")
			w.wantToken("r")
			c.change(w)
			w.reconcile("r")
			w.wantJoined("r", c.status, c.reason, "")
			if !c.over {
				w.wantToken("r")
				return
			}
			w.wantNothing()
			w.reconcile("r")
			if w.wantNothing(); len(w.created) != 2 {
				t.Fatal("it got another token")
			}
			if got := w.metric("hostwarrant_tokens_ended_total reason=" + c.reason); got != 1 {
				t.Errorf("hostwarrant_tokens_ended_total is %v", got)
			}
		})
	}
}

func TestARunThatIsDeletedLeavesNoToken(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.reconcile("r")
	w.must(w.client.Delete(t.Context(), w.get("r")))
	if w.get("r").DeletionTimestamp == nil {
		t.Fatal("nothing holds the run")
	}
	w.reconcile("r")
	w.wantNothing()
	var gone v1alpha1.HostRun
	if err := w.client.Get(t.Context(), request("r").NamespacedName, &gone); !apierrors.IsNotFound(err) {
		t.Fatalf("the run is still there: %v", err)
	}
}

// Whoever takes the finalizer away leaves no token behind, while the minter runs.
func TestARunThatVanishesLeavesNoToken(t *testing.T) {
	for name, again := range map[string]bool{"gone": false, "replaced by one of its name": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.run("r", "host-a", "pool-1", 0))
			w.reconcile("r")
			w.vanish("r")
			if again {
				next := w.run("r", "host-a", "pool-1", 0)
				next.UID, next.Status = "uid-next", v1alpha1.HostRunStatus{}
				w.must(w.client.Create(t.Context(), next))
			}
			w.reconcile("r")
			w.wantNothing()
		})
	}
}

func TestAnUnsentRunGetsAnotherTokenWhenItsOwnIsOver(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.reconcile("r")
	first := w.wantToken("r")
	w.now = w.now.Add(token.Life)
	w.reconcile("r")
	if w.wantJoined("r", isUnknown, token.Expired, "another"); len(w.secrets()) != 0 {
		t.Fatalf("left: %v", w.secrets())
	}
	w.reconcile("r")
	if second := w.wantToken("r"); second == first {
		t.Fatal("the same token again")
	}
}

func TestRunsThatGetNoToken(t *testing.T) {
	edit := func(old, new string) func(*world, *v1alpha1.HostRun) {
		return func(w *world, _ *v1alpha1.HostRun) {
			document := testkit.PolicyDocument(w.signer)
			if !strings.Contains(document, old) {
				w.t.Fatalf("no %q in the policy", old)
			}
			w.policy = w.signedPolicy(strings.Replace(document, old, new, 1))
		}
	}
	cases := map[string]struct {
		change func(w *world, run *v1alpha1.HostRun)
		reason string
		text   string
	}{
		"a host that is not there":    {func(_ *world, r *v1alpha1.HostRun) { r.Spec.HostRef.Name = "host-z" }, "HostNotFound", "host-z"},
		"a profile that is not there": {func(w *world, _ *v1alpha1.HostRun) { w.profile = nil }, "ProfileNotFound", "tls"},
		"an unsigned script": {func(w *world, _ *v1alpha1.HostRun) {
			unstructured.RemoveNestedField(w.profile.Object, "spec", "signatures")
		}, "Unsigned", "join"},
		"a script that declares no token": {func(w *world, _ *v1alpha1.HostRun) { w.profile = w.signedProfile() }, "ParamUndeclared", "KPSSH_BOOTSTRAP_TOKEN"},
		"a script to which it is no secret": {func(w *world, _ *v1alpha1.HostRun) {
			w.profile = w.signedProfile("KPSSH_BOOTSTRAP_TOKEN optional type text")
		}, "ParamUndeclared", "KPSSH_BOOTSTRAP_TOKEN"},
		"another phase":                    {func(_ *world, r *v1alpha1.HostRun) { r.Spec.Phase = v1alpha1.HostRunLeave }, "Unsigned", "leave"},
		"a namespace the policy lists not": {edit("      pool: {", "      pond: {"), "NamespaceRefused", ""},
		"a name the policy allows not":     {edit("nodeNames: [\"*\"]}\n  thresholds", "nodeNames: [\"bm-*\"]}\n  thresholds"), "NodeNameRefused", "pool-1"},
		"the name of a living node": {func(w *world, _ *v1alpha1.HostRun) {
			w.objects = append(w.objects, nodeOf(w, "pool-1", "kpssh://pool/host-b"))
		}, "NodeNameTaken", "pool-1"},
		"that of one without provider id": {func(w *world, _ *v1alpha1.HostRun) { w.objects = append(w.objects, nodeOf(w, "pool-1", "")) }, "NodeNameTaken", "pool-1"},
		"that of a host that has joined, and whose node has yet to register": {func(w *world, _ *v1alpha1.HostRun) {
			w.objects = append(w.objects, w.over("before", "host-b", "pool-1", isTrue, 9*time.Minute))
		}, "NodeNameTaken", "HostRun pool/before holds"},
		"the approver takes them all": {func(w *world, _ *v1alpha1.HostRun) {
			w.binding = `RBAC: allowed by ClusterRoleBinding "auto" of ClusterRole "x" to Group "system:bootstrappers"`
		}, token.AutoApproverBound, `ClusterRoleBinding "auto"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run := w.run("r", "host-a", "pool-1", 1)
			c.change(w, run)
			w.start(run)
			w.reconcile("r")
			w.wantJoined("r", isFalse, c.reason, c.text)
			if w.wantNothing(); len(w.created) > 0 || w.get("r").Status.TokenID != "" {
				t.Fatal("a token was made")
			}
			w.binding = ""
			if w.reconcile("r"); len(w.created) > 0 {
				t.Fatal("a refusal was taken back")
			}
			if w.metric("hostwarrant_tokens_refused_total reason="+c.reason) != 1 {
				t.Error("hostwarrant_tokens_refused_total")
			}
		})
	}
}

func TestAHostThatDidNotRegisterInTimeLosesItsName(t *testing.T) {
	for name, before := range map[string]func(*world) *v1alpha1.HostRun{
		"joined, and did not register in time": func(w *world) *v1alpha1.HostRun { return w.over("before", "host-b", "pool-1", isTrue, 10*time.Minute) },
		"did not join":                         func(w *world) *v1alpha1.HostRun { return w.over("before", "host-b", "pool-1", isFalse, time.Minute) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.objects = append(w.objects, before(w))
			w.start(w.run("r", "host-a", "pool-1", 0))
			w.reconcile("r")
			w.reconcile("r")
			w.wantToken("r")
		})
	}
}

func TestANodeOfTheHostsOwnMayJoinAgain(t *testing.T) {
	w := newWorld(t)
	old := nodeOf(w, "pool-1", "kpssh://pool/host-a")
	old.CreationTimestamp = metav1.NewTime(w.now.Add(-time.Hour))
	w.objects = append(w.objects, old)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.reconcile("r")
	w.reconcile("r")
	w.wantToken("r")
}

// The relay's word is when, never whether.
func TestWhoDoesNotWaitGetsNoToken(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.HostRun){
		"not next yet": func(r *v1alpha1.HostRun) { r.Status.Conditions = nil },
		"unreachable":  func(r *v1alpha1.HostRun) { r.Status.Conditions[0].Reason = "Unreachable" },
		"sent":         func(r *v1alpha1.HostRun) { r.Status.Conditions[0].Status = isUnknown },
		"cancelled":    func(r *v1alpha1.HostRun) { r.Spec.Cancel = true },
		"refused by us once": func(r *v1alpha1.HostRun) {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionJoined, Status: isFalse, Reason: "NodeNameTaken"})
		},
	} {
		w := newWorld(t)
		run := w.run("r", "host-a", "pool-1", 0)
		change(run)
		w.start(run)
		w.reconcile("r")
		if len(w.created) > 0 || len(w.asked) > 0 {
			t.Errorf("%s: a token was made", name)
		}
	}
}

func TestWhatCannotBeAskedIsNoYes(t *testing.T) {
	for name, kind := range map[string]client.Object{
		"who would approve":  &authorizationv1.SubjectAccessReview{},
		"a place for tokens": &corev1.Secret{},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.run("r", "host-a", "pool-1", 0))
			w.fails = func(verb string, o client.Object) error {
				if verb == "create" && fmt.Sprintf("%T", o) == fmt.Sprintf("%T", kind) {
					return errors.New("no answer")
				}
				return nil
			}
			if _, err := w.m.Reconcile(t.Context(), request("r")); err == nil || !strings.Contains(err.Error(), "no answer") {
				t.Fatalf("error %v", err)
			}
			if len(w.secrets()) > 0 {
				t.Fatalf("made: %v", w.secrets())
			}
			w.fails = nil
			w.reconcile("r")
			w.reconcile("r")
			w.wantToken("r")
		})
	}
}

func TestWithoutAPolicyNobodyGetsAToken(t *testing.T) {
	w := newWorld(t)
	w.policy = nil
	w.start(w.run("r", "host-a", "pool-1", 0))
	if _, err := w.m.Reconcile(t.Context(), request("r")); err == nil || !strings.Contains(err.Error(), "PolicyUnavailable") {
		t.Fatalf("error %v", err)
	}
	if c := joined(w.get("r")); c != nil || len(w.created) > 0 {
		t.Fatalf("Joined %+v, %d Secrets", c, len(w.created))
	}
}

// Six runs of three hosts, admitted at once for one name.
func TestOfSeveralRunsForOneNameOneGetsIt(t *testing.T) {
	w := newWorld(t)
	var runs []*v1alpha1.HostRun
	for i := range 6 {
		runs = append(runs, w.run(fmt.Sprintf("r%d", 5-i), []string{"host-a", "host-b", "host-c"}[i%3], "pool-1", 0))
	}
	for _, host := range []string{"host-d", "host-e", "host-f"} {
		w.objects = append(w.objects, w.host(host))
	}
	for i, host := range []string{"host-d", "host-e", "host-f"} {
		runs[i+3].Spec.HostRef.Name = host
	}
	w.start(runs...)
	for range 2 {
		for i := range 6 {
			w.reconcile(fmt.Sprintf("r%d", 5-i))
		}
	}
	w.wantToken("r0") // the lowest UID
	for i := 1; i < 6; i++ {
		w.wantJoined(fmt.Sprintf("r%d", i), isFalse, "NodeNameTaken", "r0")
	}
}

func TestAnOlderRunThatIsSeenLateDoesNotGetAGivenName(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("young", "host-a", "pool-1", 1))
	w.reconcile("young")
	w.wantToken("young")
	w.must(w.client.Create(t.Context(), w.run("old", "host-b", "pool-1", 60)))
	w.reconcile("old")
	w.wantJoined("old", isFalse, "NodeNameTaken", "young")
	w.wantToken("young")
}

// staleRuns is a cache that lacks what the minter wrote a moment ago.
type staleRuns struct {
	client.Reader
	without string
}

func (s staleRuns) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := s.Reader.List(ctx, list, opts...)
	if all, ok := list.(*v1alpha1.HostRunList); ok {
		all.Items = slices.DeleteFunc(all.Items, func(r v1alpha1.HostRun) bool { return r.Name == s.without })
	}
	return err
}

func TestACacheThatIsBehindMakesNoSecondToken(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0), w.run("s", "host-b", "pool-1", 5))
	w.m.Objects.Runs = staleRuns{w.client, "s"}
	w.reconcile("r")
	w.wantToken("r")
	w.m.Objects.Runs = staleRuns{w.client, "r"}
	w.reconcile("s")
	w.wantJoined("s", isFalse, "NodeNameTaken", "pool/r has a token")
	w.wantToken("r")
}

// A run that ended a moment ago keeps no name from the next.
func TestANameIsFreeAsSoonAsItsRunIsOver(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 5))
	w.reconcile("r")
	w.wantToken("r")
	w.becomes("r", v1alpha1.ConditionSucceeded, isFalse, "ScriptFailed")
	w.must(w.client.Create(t.Context(), w.run("s", "host-b", "pool-1", 0)))
	w.reconcile("s")
	w.wantToken("s")
	w.wantJoined("r", isFalse, token.RunEnded, "")
}

// Two runs of one host are no rivals: the second waits.
func TestTheSecondRunOfAHostWaitsForTheFirst(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 5), w.run("s", "host-a", "pool-1", 0))
	w.reconcile("r")
	if _, err := w.m.Reconcile(t.Context(), request("s")); err == nil || !strings.Contains(err.Error(), "NodeNameTaken") {
		t.Fatalf("error %v", err)
	}
	w.wantToken("r")
	w.becomes("r", v1alpha1.ConditionSucceeded, isTrue, "Succeeded")
	w.reconcile("s")
	w.wantToken("s")
}

// A host of the same name in another namespace is another host: its run does not wait, which could be for ever.
func TestARunOfAnotherNamespacesHostIsNoNextRunOfThisOne(t *testing.T) {
	w := newWorld(t)
	document := testkit.PolicyDocument(w.signer)
	pool := `      pool: {classes: [default, small, large, bm], nodeNames: ["*"]}` + "\n"
	if !strings.Contains(document, pool) {
		t.Fatalf("no %q in the policy", pool)
	}
	w.policy = w.signedPolicy(strings.Replace(document, pool, pool+strings.Replace(pool, "pool", "pond", 1), 1))
	there := w.host("host-a")
	there.SetNamespace("pond")
	w.objects = append(w.objects, there)
	s := w.run("s", "host-a", "pool-1", 0)
	s.Namespace = "pond"
	w.start(w.run("r", "host-a", "pool-1", 5), s)
	w.reconcile("r")
	w.wantToken("r")
	w.m.Objects.Runs = staleRuns{w.client, "r"} // else it is judged beside r, and refused before
	if _, err := w.m.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s)}); err != nil {
		t.Fatalf("it waits: %v", err)
	}
	w.must(w.client.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	c := joined(s)
	if c == nil || c.Status != isFalse || c.Reason != "NodeNameTaken" || !strings.Contains(c.Message, "pool/r has a token") {
		t.Fatalf("Joined %+v", c)
	}
	w.wantToken("r")
}

// What cannot be handed over, or not be written down, is taken back at once: the run that comes by next may be in another minter's hands.
func TestATokenThatDoesNotReachItsRunIsTakenBackAtOnce(t *testing.T) {
	cases := map[string]struct {
		verb string
		nth  int // of those that succeed before
	}{
		"the Secret cannot be made":            {"create", 1}, // the token's own is the first
		"the status cannot be written":         {"status", 1}, // the record is the first
		"near miss: the record is not written": {"status", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.run("r", "host-a", "pool-1", 0))
			done := 0
			w.fails = func(verb string, o client.Object) error {
				if _, review := o.(*authorizationv1.SubjectAccessReview); review || verb != c.verb {
					return nil
				}
				if done++; done > c.nth {
					return errors.New("no answer")
				}
				return nil
			}
			if _, err := w.m.Reconcile(t.Context(), request("r")); err == nil || !strings.Contains(err.Error(), "no answer") {
				t.Fatalf("error %v", err)
			}
			if left := w.secrets(); len(left) > 0 {
				t.Fatalf("left: %v", left)
			}
			if w.metric("hostwarrant_tokens_issued_total") != 0 {
				t.Error("counted as issued")
			}
			w.fails = nil
			w.reconcile("r")
			w.reconcile("r")
			w.wantToken("r")
		})
	}
}

// A run that somebody changed meanwhile is no fault of anybody: it is looked at again soon, and nothing is left of the attempt.
func TestARunThatChangedMeanwhileIsLookedAtAgainSoon(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.fails = func(verb string, o client.Object) error {
		if verb == "status" {
			return apierrors.NewConflict(schema.GroupResource{Resource: "hostruns"}, o.GetName(), errors.New("changed"))
		}
		return nil
	}
	result, err := w.m.Reconcile(t.Context(), request("r"))
	if err != nil || result.RequeueAfter != time.Second || len(w.secrets()) > 0 {
		t.Fatalf("%v, again after %s, Secrets %v", err, result.RequeueAfter, w.secrets())
	}
	w.fails = nil
	w.reconcile("r")
	w.reconcile("r")
	w.wantToken("r")
}

func TestAnIDThatSomebodyHasGivesWay(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	var first string
	w.fails = func(verb string, o client.Object) error {
		if verb == "create" && strings.HasPrefix(o.GetName(), "bootstrap-token-") && first == "" {
			first = o.GetName()
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "secrets"}, first)
		}
		return nil
	}
	w.reconcile("r")
	if id := w.wantToken("r"); first == "" || "bootstrap-token-"+id == first {
		t.Fatalf("%s was taken, and is %s", first, id)
	}
}

func TestTheApproverIsToldOfIssuedTokensOnly(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	var early string
	w.m.onStep = func(step string) {
		if step == "created" {
			early = w.get("r").Status.TokenID
			if _, ok := w.m.Book.Holder(early); ok {
				t.Error("held before it was handed over")
			}
		}
	}
	w.reconcile("r")
	id := w.wantToken("r")
	if early != id {
		t.Fatalf("recorded %q, issued %q", early, id)
	}
	w.must(w.m.Approved(t.Context(), id, "Approved", "by proof"))
	w.wantJoined("r", isTrue, "Approved", "by proof")
	if _, ok := w.m.Book.Holder(id); !ok || len(w.secrets()) != 2 {
		t.Fatal("the kubelet cannot fetch its certificate any more")
	}
	w.must(w.client.Create(t.Context(), nodeOf(w, "pool-1", "kpssh://pool/host-a")))
	w.reconcile("r")
	w.wantJoined("r", isTrue, "Approved", "by proof")
	w.wantNothing()
}

// The approver approves what was recorded. Nothing is where the token is over by then.
func TestAnApprovalThatIsNotRecordedIsAnError(t *testing.T) {
	const message = "certificate request first (uid-1): by proof"
	for name, change := range map[string]func(w *world, id string){
		"the run was cancelled, and its token taken": func(w *world, _ string) {
			w.becomes("r", v1alpha1.ConditionSucceeded, isFalse, "Cancelled")
			w.reconcile("r")
		},
		"the token was ended by a denial": func(w *world, id string) { w.must(w.m.End(w.t.Context(), id, "CSRMismatch", message)) },
		"the next minter ended it, while this one was paused": func(w *world, _ string) {
			old := w.m
			w.restart()
			w.becomes("r", v1alpha1.ConditionSucceeded, isFalse, "Cancelled")
			w.reconcile("r")
			w.m = old
		},
		"the run said no, in these words": func(w *world, _ string) {
			w.change("r", func(run *v1alpha1.HostRun) { say(&run.Status, 1, isFalse, "Approved", message, w.now) })
		},
		"another request was approved": func(w *world, id string) {
			w.must(w.m.Approved(w.t.Context(), id, "Approved", "certificate request second (uid-2): by proof"))
		},
		"the run vanished": func(w *world, _ string) { w.vanish("r") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.run("r", "host-a", "pool-1", 0))
			w.reconcile("r")
			id := w.wantToken("r")
			change(w, id)
			err := w.m.Approved(t.Context(), id, "Approved", message)
			if want := "nothing was recorded: the token " + id + " is over, or another request was approved"; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	t.Run("near miss: the same approval again", func(t *testing.T) {
		w := newWorld(t)
		w.start(w.run("r", "host-a", "pool-1", 0))
		w.reconcile("r")
		id := w.wantToken("r")
		long := message + strings.Repeat("x", maxMessage)
		w.must(w.m.Approved(t.Context(), id, "Approved", long))
		w.must(w.m.Approved(t.Context(), id, "Approved", long))
		w.wantJoined("r", isTrue, "Approved", message)
	})
}

// Another run of the same name was made meanwhile: what is said of the token is not said of that.
func TestARunThatWasMadeAnewIsNotApproved(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.reconcile("r")
	id := w.wantToken("r")
	w.vanish("r")
	anew := w.run("r", "host-a", "pool-1", 0)
	anew.UID = "uid-anew"
	w.must(w.client.Create(t.Context(), anew))
	if err := w.m.Approved(t.Context(), id, "Approved", "by proof"); err == nil {
		t.Error("approved")
	}
	if c := joined(w.get("r")); c != nil {
		t.Errorf("the other run says %s %s", c.Status, c.Reason)
	}
	w.wantNothing()
}

// An answer to a question of an earlier token's time does not serve the next one.
func TestEachTokenIsProvedAnew(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.reconcile("r")
	first := w.wantToken("r")
	w.change("r", func(run *v1alpha1.HostRun) {
		run.Status.Proof = &v1alpha1.HostRunProof{Nonce: strings.Repeat("0", 64), Text: "an answer", Signature: "by the host"}
	})
	w.now = w.now.Add(token.Life)
	w.reconcile("r")
	w.reconcile("r")
	if second := w.wantToken("r"); second == first {
		t.Fatal("the same token again")
	}
	if p := w.get("r").Status.Proof; p != nil {
		t.Errorf("the next token has the proof %+v", p)
	}
}

// Somebody else's finalizer, written at the same moment, stays.
func TestFinalizersOfOthersStay(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	meanwhile := func(finalizer string) {
		w.fails = func(verb string, _ client.Object) error {
			if verb == "patch" {
				w.fails = nil
				run := w.get("r")
				run.Finalizers = append(run.Finalizers, finalizer)
				w.must(w.client.Update(t.Context(), run))
			}
			return nil
		}
	}
	meanwhile("example.com/first")
	w.reconcile("r")
	w.wantToken("r")
	w.becomes("r", v1alpha1.ConditionSucceeded, isTrue, "Done")
	meanwhile("example.com/second")
	w.reconcile("r")
	w.wantNothing()
	if got := w.get("r").Finalizers; !slices.Equal(got, []string{"example.com/first", "example.com/second"}) {
		t.Errorf("finalizers %v", got)
	}
}

func TestOnlyTheRunsOfATokensNodeAreWokenByIt(t *testing.T) {
	w := newWorld(t)
	w.start(w.run("r", "host-a", "pool-1", 0))
	w.reconcile("r")
	if got := w.m.runsOf(t.Context(), nodeOf(w, "pool-1", "")); len(got) != 1 || got[0] != request("r") {
		t.Errorf("%v", got)
	}
	if got := w.m.runsOf(t.Context(), nodeOf(w, "pool-2", "")); len(got) != 0 {
		t.Errorf("%v", got)
	}
	idle := w.run("idle", "host-b", "pool-2", 0)
	idle.Status.Conditions = nil
	if !w.m.concerns(w.get("r")) || !w.m.concerns(w.run("next", "host-b", "pool-2", 0)) || w.m.concerns(idle) {
		t.Error("whom the minter looks at")
	}
}
