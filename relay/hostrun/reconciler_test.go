package hostrun

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/relay/transport"
)

const (
	isTrue    = metav1.ConditionTrue
	isFalse   = metav1.ConditionFalse
	isUnknown = metav1.ConditionUnknown
)

func TestASignedRunIsDeliveredOnce(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.courier.onDeliver = func() {
		// What a relay that dies now leaves behind.
		w.want(v1alpha1.ConditionDelivered, isUnknown, reasonSending, "")
		if id := w.get().Status.RunID; id != string(w.courier.deliveries[0].Envelope.RunID) {
			t.Fatalf("run-id %q is not the one that is sent", id)
		}
	}
	w.reconcile()
	w.want(v1alpha1.ConditionVerified, isTrue, "Verified", "vouched for")
	w.want(v1alpha1.ConditionDelivered, isTrue, reasonDelivered, "")
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "exited 0")
	got := w.get().Status
	if *got.ShimExitCode != 0 || *got.ScriptExitCode != 0 || got.Trailer != v1alpha1.TrailerWhole || got.TranscriptTail != "hello\n" || got.Attempts != 1 || got.FinishedAt == nil {
		t.Fatalf("status %+v", got)
	}
	if w.writes != 2 {
		t.Fatalf("%d status writes, want 2", w.writes)
	}
	w.reconcile()
	w.restart()
	w.reconcile()
	w.wantSent(1)
	if len(w.courier.recalls) != 0 {
		t.Fatal("a finished run was asked about")
	}
}

func TestWhatIsSent(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.reconcile()
	o := w.courier.deliveries[0]
	if o.Target.Address != "10.0.0.7:22" || o.Target.User != "kpssh" || o.Target.Command != defaultShim || o.Target.PinIn != `Secret "host-a-ssh", knownHost` {
		t.Fatalf("target %+v", o.Target)
	}
	if o.Limits.Run != 20*time.Minute+runMargin {
		t.Fatalf("limit %s", o.Limits.Run)
	}
	params, err := envelope.DecodeParams(o.Envelope.Params)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"KPSSH_CLUSTER_ENDPOINT": "", "KPSSH_CLUSTER_CA_B64": "", "KPSSH_BOOTSTRAP_TOKEN": "", "KPSSH_NODE_NAME": "pool-1",
		"KPSSH_PROVIDER_ID": "kpssh://pool/host-a", "KPSSH_NODE_LABELS": "", "KPSSH_TAINTS": "",
		"KPSSH_HOST_ADDRESS": "10.0.0.7", "KPSSH_NODE_ADDRESS": "10.0.0.7", "KPSSH_VAR_clusterDNS": "10.0.0.10",
	}
	if diff := cmp.Diff(want, params); diff != "" {
		t.Fatal(diff)
	}
	if got := w.get().Status.ScriptDigest; got != digest(o.Envelope.Script) {
		t.Fatalf("digest %q", got)
	}
}

// set writes a value deep in an object.
func set(o *unstructured.Unstructured, value any, path ...string) {
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
}

// deleted puts an object under a deletion that a finalizer holds up.
func deleted(o *unstructured.Unstructured) {
	now := metav1.Now()
	o.SetDeletionTimestamp(&now)
	o.SetFinalizers([]string{"example.com/hold"})
}

func TestRunsThatAreRefusedReachNoHost(t *testing.T) {
	cases := map[string]struct {
		change func(w *world)
		reason string
		text   string
	}{
		"a host that does not exist":       {func(w *world) { w.run.Spec.HostRef.Name = "host-z" }, "HostNotFound", `"host-z"`},
		"a host of another namespace":      {func(w *world) { w.run.Namespace = "other" }, "HostNotFound", `namespace "other"`},
		"a host under deletion":            {func(w *world) { deleted(w.host) }, "HostNotFound", "being deleted"},
		"a Raw host":                       {func(w *world) { set(w.host, "Raw", "spec", "execMode") }, "RawRefused", "Raw"},
		"a host without execMode":          {func(w *world) { unstructured.RemoveNestedField(w.host.Object, "spec", "execMode") }, "RawRefused", "Raw"},
		"user root":                        {func(w *world) { set(w.host, "root", "spec", "user") }, "UserRefused", "root"},
		"another port":                     {func(w *world) { set(w.host, int64(2222), "spec", "port") }, "PortRefused", "2222"},
		"another command":                  {func(w *world) { set(w.host, "sh -s", "spec", "shimCommand") }, "ShimCommandRefused", "sh -s"},
		"a signer outside the policy":      {func(w *world) { set(w.host, []any{w.root.Line}, "spec", "trustedSigners") }, "SignersNotInPolicy", "SHA256:"},
		"no signers":                       {func(w *world) { set(w.host, []any{}, "spec", "trustedSigners") }, "SignersNotInPolicy", ""},
		"a claimed host":                   {func(w *world) { set(w.host, map[string]any{"name": "claim-1"}, "status", "claimRef") }, "HostClaimed", "claimed"},
		"a profile that does not exist":    {func(w *world) { w.run.Spec.ProfileRef.Name = "nope" }, "ProfileNotFound", `"nope"`},
		"a profile under deletion":         {func(w *world) { deleted(w.profile) }, "ProfileNotFound", "being deleted"},
		"a script altered by one byte":     {func(w *world) { set(w.profile, "#!/usr/bin/env bash\nset -eu\necho JOIN\n", "spec", "scripts", "join") }, "BytesChanged", "join"},
		"a script without its last LF":     {func(w *world) { set(w.profile, "#!/usr/bin/env bash\nset -eu\necho join", "spec", "scripts", "join") }, "NewlineChanged", "join"},
		"a template":                       {func(w *world) { set(w.profile, "echo {{ .X }}\n", "spec", "scripts", "join") }, "TemplateFound", "line 1"},
		"an unsigned phase":                {func(w *world) { unstructured.RemoveNestedField(w.profile.Object, "spec", "signatures", "join") }, "Unsigned", "join"},
		"another phase's signature":        {func(w *world) { w.sign("leave"); swap(w.profile, "join", "leave") }, "BytesChanged", "join"},
		"a policy for other signers":       {func(w *world) { w.setPolicy(strings.Replace(policyOf(w), w.signer.Line, w.root.Line, 1)) }, "SignersNotInPolicy", ""},
		"an expired policy":                {func(w *world) { w.now = w.now.AddDate(1, 0, 0); w.run.CreationTimestamp = metav1.NewTime(w.now) }, "PolicyExpired", "expired at"},
		"no Secret":                        {func(w *world) { w.secret = nil }, "SecretNotFound", "host-a-ssh"},
		"no Secret named":                  {func(w *world) { unstructured.RemoveNestedField(w.host.Object, "spec", "sshKeySecretRef") }, "SecretNotFound", ""},
		"a namespace that is not ours":     {func(w *world) { w.refuses = "Secret" }, "NamespaceRefused", "host-namespace"},
		"no pinned key":                    {func(w *world) { delete(w.secret.Data, "knownHost") }, "HostKeyNotPinned", "no host key is pinned"},
		"a fingerprint instead of a key":   {func(w *world) { w.secret.Data["knownHost"] = []byte("SHA256:47DEQpj8HBSa") }, "HostKeyNotPinned", "fingerprint"},
		"no login key":                     {func(w *world) { delete(w.secret.Data, "privateKey") }, "LoginKeyInvalid", "privateKey"},
		"a line feed in a var":             {func(w *world) { w.run.Spec.Vars["x"] = "a\nBASH_ENV=/tmp/x" }, "ParamInvalid", "KPSSH_VAR_x"},
		"a var that is no name":            {func(w *world) { w.run.Spec.Vars["x;id"] = "a" }, "ParamInvalid", "KPSSH_VAR_x;id"},
		"cancelled":                        {func(w *world) { w.run.Spec.Cancel = true }, "Cancelled", ""},
		"past its deadline":                {func(w *world) { w.run.Spec.DeadlineSeconds = 10; w.now = w.now.Add(10 * time.Second) }, "DeadlineExceeded", "no attempt came to an end"},
		"past its deadline by default":     {func(w *world) { w.now = w.now.Add(time.Hour) }, "DeadlineExceeded", "no attempt came to an end"},
		"an uninstall the profile has not": {func(w *world) { w.run.Spec.Phase = "uninstall"; dropUninstall(w.profile) }, "Malformed", "no such script"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			if strings.HasSuffix(c.reason, "NotFound") {
				w.now = w.now.Add(applyGrace) // until then it may only not be there yet
			}
			w.start()
			w.reconcile()
			w.wantSent(0)
			kind := v1alpha1.ConditionSucceeded
			if c.reason == "PolicyExpired" {
				kind = v1alpha1.ConditionVerified
			}
			w.want(kind, isFalse, c.reason, c.text)
			if got := w.get().Status; got.RunID != "" || got.Attempts != 0 {
				t.Fatalf("status %+v", got)
			}
		})
	}
}

func nodeOf(name, providerID string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: providerID}}
}

// otherRun is a run of another host for the same node name, at that state.
func otherRun(w *world, succeeded metav1.ConditionStatus) *v1alpha1.HostRun {
	o := w.run.DeepCopy()
	o.Name, o.Spec.HostRef.Name = "run-0", "host-b"
	o.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: succeeded, Reason: "Sending", LastTransitionTime: metav1.Now()}}
	return o
}

// deletedRun is one under deletion, of which Delivered has that state.
func deletedRun(w *world, delivered metav1.ConditionStatus) *v1alpha1.HostRun {
	o, now := otherRun(w, isUnknown), metav1.NewTime(w.now)
	o.Status.Conditions[0].Type = v1alpha1.ConditionDelivered
	o.Status.Conditions[0].Status = delivered
	o.DeletionTimestamp, o.Finalizers = &now, []string{"example.com/hold"}
	return o
}

// What admission refuses is refused here too, whatever was admitted, and its near miss is not.
func TestARunOutsideThePolicyReachesNoHost(t *testing.T) {
	edit := func(w *world, old, new string) {
		if !strings.Contains(policyOf(w), old) {
			t.Fatalf("no %q in the policy", old)
		}
		w.setPolicy(strings.Replace(policyOf(w), old, new, 1))
	}
	cases := map[string]struct {
		change, near func(w *world)
		reason       string
	}{
		"a namespace the policy does not list": {
			func(w *world) { edit(w, "      pool: {", "      pond: {") },
			func(*world) {}, "NamespaceRefused",
		},
		"a class that is not the namespace's": {
			func(w *world) { w.host.SetLabels(map[string]string{object.HostClassLabel: "gpu"}) },
			func(w *world) { w.host.SetLabels(map[string]string{object.HostClassLabel: "small"}) }, "HostClassRefused",
		},
		"a node name that is not the namespace's": {
			func(w *world) {
				edit(w, `pool: {classes: [default, small, large, bm], nodeNames: ["*"]}`, `pool: {classes: [default], nodeNames: ["other-*"]}`)
			},
			func(w *world) {
				edit(w, `pool: {classes: [default, small, large, bm], nodeNames: ["*"]}`, `pool: {classes: [default], nodeNames: ["pool-*"]}`)
			}, "NodeNameRefused",
		},
		"a profile that is not the class's": {
			func(w *world) { edit(w, `default: ["*"]`, `default: ["db-*"]`) },
			func(w *world) { edit(w, `default: ["*"]`, `default: ["tls-*"]`) }, "ProfileRefused",
		},
		"the name of a living node": {
			func(w *world) { w.more = []client.Object{nodeOf("pool-1", "aws:///i-1")} },
			func(w *world) {
				w.more = []client.Object{nodeOf("pool-1", "kpssh://pool/host-a"), nodeOf("pool-2", "aws:///i-2")}
			}, "NodeNameTaken",
		},
		"the name that a deleted run, which was sent, holds": {
			func(w *world) { w.more = []client.Object{deletedRun(w, isUnknown)} },
			func(w *world) { w.more = []client.Object{deletedRun(w, isFalse)} }, "NodeNameTaken",
		},
		"the name that another run holds": {
			func(w *world) { w.more = []client.Object{otherRun(w, isUnknown)} },
			func(w *world) { w.more = []client.Object{otherRun(w, isFalse)} }, "NodeNameTaken",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.change(w)
			w.start()
			w.reconcile()
			w.wantSent(0)
			w.want(v1alpha1.ConditionSucceeded, isFalse, c.reason, "")
			near := newWorld(t)
			c.near(near)
			near.start()
			near.reconcile()
			near.wantSent(1)
		})
	}
}

// ledgerOf remembers an anchor and a policy.
func ledgerOf(roots, version string) *v1alpha1.Ledger {
	digest := v1alpha1.SHA256Digest(trustpolicy.Digest([]byte(roots)))
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		panic(err)
	}
	return &v1alpha1.Ledger{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.LedgerPolicyName},
		Spec:       v1alpha1.LedgerSpec{Policy: &v1alpha1.LedgerPolicy{Roots: roots, AnchorDigest: digest, RootVersion: 1, Version: n, Digest: digest}},
	}
}

func TestWhatTheClusterRemembersHoldsHereToo(t *testing.T) {
	for name, c := range map[string]struct {
		ledger func(w *world) *v1alpha1.Ledger
		reason string // for which the run waits; empty where it is sent
		alarm  float64
	}{
		"an older policy":                  {func(w *world) *v1alpha1.Ledger { return ledgerOf(w.root.Line, "2") }, "", 0},
		"a newer policy":                   {func(w *world) *v1alpha1.Ledger { return ledgerOf(w.root.Line, "4") }, "PolicyUnavailable", 0},
		"another policy of the version":    {func(w *world) *v1alpha1.Ledger { return ledgerOf(w.root.Line, "3") }, "PolicyUnavailable", 0},
		"another anchor":                   {func(w *world) *v1alpha1.Ledger { return ledgerOf(w.signer.Line, "2") }, "AnchorChanged", 1},
		"nothing of policies":              {func(*world) *v1alpha1.Ledger { l := ledgerOf("x", "1"); l.Spec = v1alpha1.LedgerSpec{}; return l }, "", 0},
		"the anchor, with a final newline": {func(w *world) *v1alpha1.Ledger { return ledgerOf(w.root.Line+"\n", "2") }, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.more = []client.Object{c.ledger(w)}
			w.start()
			result := w.reconcile()
			if got := w.metric("hostwarrant_anchor_differs"); got != c.alarm {
				t.Errorf("hostwarrant_anchor_differs is %v", got)
			}
			if c.reason == "" {
				w.wantSent(1)
				return
			}
			w.wantSent(0)
			w.want(v1alpha1.ConditionVerified, isFalse, c.reason, "")
			if result.RequeueAfter == 0 {
				t.Error("does not come back")
			}
			if err := w.r.Policy.Ready(w.now); err == nil || !strings.HasPrefix(err.Error(), c.reason) {
				t.Errorf("ready: %v", err)
			}
		})
	}
}

// An alarm alone: what is pinned while the relay runs is another start's business.
func TestALedgerThatPinsAnotherAnchorLaterIsAlarmed(t *testing.T) {
	w := newWorld(t)
	w.start()
	if _, err := w.r.Policy.Snapshot(t.Context(), w.now); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Create(t.Context(), ledgerOf(w.signer.Line, "2")); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.wantSent(1)
	if got := w.metric("hostwarrant_anchor_differs"); got != 1 {
		t.Errorf("hostwarrant_anchor_differs is %v", got)
	}
	anchor := w.anchor
	if got := w.metric("hostwarrant_anchor_info cluster_id=" + anchor.ClusterID + " digest=" + anchor.Digest); got != 1 {
		t.Errorf("hostwarrant_anchor_info is %v", got)
	}
}

// Whoever cannot read the ledger must not decide as if it were empty.
func TestALedgerThatCannotBeReadIsNoEmptyOne(t *testing.T) {
	w := newWorld(t)
	w.refuses = "Ledger"
	w.start()
	if _, err := w.r.Policy.Snapshot(t.Context(), w.now); err == nil {
		t.Fatal("decided without the ledger")
	}
	w.refuses = ""
	if _, err := w.r.Policy.Snapshot(t.Context(), w.now); err != nil {
		t.Fatal(err)
	}
}

func policyOf(w *world) string {
	text, _, err := unstructured.NestedString(w.policy.Object, "spec", "document")
	if err != nil {
		panic(err)
	}
	return text
}

func swap(o *unstructured.Unstructured, a, b string) {
	x, _, errX := unstructured.NestedString(o.Object, "spec", "signatures", a)
	y, _, errY := unstructured.NestedString(o.Object, "spec", "signatures", b)
	if errX != nil || errY != nil {
		panic("no signatures")
	}
	set(o, y, "spec", "signatures", a)
	set(o, x, "spec", "signatures", b)
}

func dropUninstall(o *unstructured.Unstructured) {
	unstructured.RemoveNestedField(o.Object, "spec", "scripts", "uninstall")
	unstructured.RemoveNestedField(o.Object, "spec", "signatures", "uninstall")
}

func TestLeaveStillRunsOnWhatIsBeingDeleted(t *testing.T) {
	for _, phase := range []v1alpha1.HostRunPhase{v1alpha1.HostRunLeave, v1alpha1.HostRunUninstall} {
		w := newWorld(t)
		deleted(w.host)
		deleted(w.profile)
		w.run.Spec.Phase = phase
		w.sign(script.Phase(phase))
		w.start()
		w.reconcile()
		w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
		params, err := envelope.DecodeParams(w.courier.deliveries[0].Envelope.Params)
		if err != nil || params["KPSSH_NODE_NAME"] != "" || params["KPSSH_PROVIDER_ID"] != "" || params["KPSSH_HOST_ADDRESS"] != "10.0.0.7" {
			t.Fatalf("%s is sent %v, %v", phase, params, err)
		}
	}
}

func TestAMissingPolicyIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	policy := w.policy
	w.policy = nil
	w.start()
	if w.reconcile().RequeueAfter == 0 {
		t.Fatal("does not come back")
	}
	w.want(v1alpha1.ConditionVerified, isFalse, "PolicyUnavailable", "")
	if err := w.client.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.want(v1alpha1.ConditionVerified, isTrue, "Verified", "")
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
}

func TestALostPolicyStaysInForceAndAWorseOneIsNotTaken(t *testing.T) {
	w := newWorld(t)
	w.start()
	snapshot := func() string {
		s, err := w.r.Policy.Snapshot(t.Context(), w.now)
		if err != nil || s.Policy == nil {
			t.Fatalf("no policy, %v", err)
		}
		return s.Policy.Digest
	}
	first := snapshot()
	stored := w.policy.DeepCopy()
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(stored), stored); err != nil {
		t.Fatal(err)
	}
	lower := strings.Replace(policyOf(w), "version: 3", "version: 2", 1)
	w.setPolicy(lower)
	stored.Object["spec"] = w.policy.Object["spec"]
	if err := w.client.Update(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if snapshot() != first {
		t.Fatal("an older policy was taken")
	}
	if err := w.client.Delete(t.Context(), stored); err != nil {
		t.Fatal(err)
	}
	if w.r.Policy.Ready(w.now.AddDate(1, 0, 0)) == nil {
		t.Fatal("ready with a policy that has expired")
	}
	if snapshot() != first || w.r.Policy.Ready(w.now) != nil {
		t.Fatal("the policy in force was unloaded")
	}
}

func TestHowARunEnds(t *testing.T) {
	unknown := envelope.Unknown
	cases := map[string]struct {
		report    delivery.Report
		unreached bool
		delivered metav1.ConditionStatus
		succeeded metav1.ConditionStatus
		reason    string
	}{
		"the script fails":       {failed(delivery.ScriptFailed, 10, 2), false, isTrue, isFalse, "ScriptFailed"},
		"it runs into its time":  {failed(delivery.TimedOut, 11, 143), false, isTrue, isFalse, "TimedOut"},
		"the host refuses":       {failed(delivery.Refused, 2, unknown), false, isTrue, isFalse, "Refused"},
		"the host is busy":       {failed(delivery.Busy, 12, unknown), false, isFalse, isUnknown, "Busy"},
		"the connection is cut":  {failed(delivery.Cut, unknown, unknown), false, isUnknown, isUnknown, "Cut"},
		"the host is off":        {failed(delivery.Unreachable, unknown, unknown), true, isFalse, isUnknown, "Unreachable"},
		"another host answers":   {failed(delivery.HostKeyMismatch, unknown, unknown), true, isFalse, isFalse, "HostKeyMismatch"},
		"no to the command":      {failed(delivery.Unreachable, unknown, unknown), false, isFalse, isUnknown, "Unreachable"},
		"the login key is wrong": {failed(delivery.LoginKeyInvalid, unknown, unknown), true, isFalse, isFalse, "LoginKeyInvalid"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.courier.report, w.courier.unreached = c.report, c.unreached
			w.start()
			result := w.reconcile()
			w.want(v1alpha1.ConditionSucceeded, c.succeeded, c.reason, "as told")
			if d := condition(w.get(), v1alpha1.ConditionDelivered); d.Status != c.delivered {
				t.Fatalf("Delivered is %s", d.Status)
			}
			if retried := result.RequeueAfter > 0; retried != (c.succeeded == isUnknown) {
				t.Fatalf("comes back after %s", result.RequeueAfter)
			}
			if c.report.ShimExit == unknown && w.get().Status.ShimExitCode != nil {
				t.Fatal("an exit code that nobody gave")
			}
		})
	}
}

func TestOnlyWhatSurelyDidNotRunIsSentAgainUnasked(t *testing.T) {
	w := newWorld(t)
	w.start()
	for i, result := range []delivery.Result{delivery.Unreachable, delivery.Busy} {
		w.courier.report, w.courier.unreached = failed(result, envelope.Unknown, envelope.Unknown), result == delivery.Unreachable
		w.reconcile()
		w.wantSent(i + 1)
	}
	w.courier.report = succeeded()
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
	w.wantSent(3)
	for _, o := range w.courier.deliveries[1:] {
		if o.Envelope.RunID != w.courier.deliveries[0].Envelope.RunID {
			t.Fatal("another attempt under another run-id")
		}
	}
	if len(w.courier.recalls) != 0 || w.get().Status.Attempts != 3 {
		t.Fatalf("%d questions, %d attempts", len(w.courier.recalls), w.get().Status.Attempts)
	}
}

func TestAfterACutTheHostIsAsked(t *testing.T) {
	unknown := envelope.Unknown
	cases := map[string]struct {
		memory    delivery.Memory
		report    delivery.Report
		sent      int
		succeeded metav1.ConditionStatus
		reason    string
	}{
		"it ended well":             {delivery.Ended, failed(delivery.Succeeded, 0, 0), 1, isTrue, "Succeeded"},
		"it ended badly":            {delivery.Ended, failed(delivery.ScriptFailed, 10, 2), 1, isFalse, "ScriptFailed"},
		"it is running":             {delivery.Running, failed(delivery.Cut, unknown, unknown), 1, isUnknown, "Cut"},
		"the host is off":           {delivery.NotAsked, failed(delivery.Unreachable, unknown, unknown), 1, isUnknown, "Unreachable"},
		"another host answers":      {delivery.NotAsked, failed(delivery.HostKeyMismatch, unknown, unknown), 1, isFalse, "HostKeyMismatch"},
		"the host cannot tell":      {delivery.Lost, failed(delivery.Cut, unknown, unknown), 1, isFalse, "Cut"},
		"there is no shim":          {delivery.Lost, failed(delivery.Refused, 127, unknown), 1, isFalse, "Refused"},
		"the host never started it": {delivery.NeverSeen, failed(delivery.Cut, unknown, unknown), 2, isTrue, "Succeeded"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start()
			w.courier.report = failed(delivery.Cut, unknown, unknown)
			w.reconcile()
			w.restart() // a relay that was restarted knows no more than the status
			w.courier.report, w.courier.memory, w.courier.recalled = succeeded(), c.memory, c.report
			w.reconcile()
			w.wantSent(c.sent)
			w.want(v1alpha1.ConditionSucceeded, c.succeeded, c.reason, "")
			id := w.courier.deliveries[0].Envelope.RunID
			if len(w.courier.recalls) != 1 || w.courier.recalls[0] != id || w.courier.deliveries[c.sent-1].Envelope.RunID != id {
				t.Fatal("asked about, or sent again, under another run-id")
			}
		})
	}
}

// Another machine under the name of the one that a run was sent to knows nothing of it, and would be given it anew.
func TestARunIsNotSentToTwoMachinesOfOneName(t *testing.T) {
	for name, c := range map[string]struct {
		was, is string
		asked   bool
		sent    int
		reason  string
	}{
		"the same object":             {"uid-1", "uid-1", true, 2, "Succeeded"},
		"made anew":                   {"uid-1", "uid-2", false, 1, "HostNotFound"},
		"sent by a relay from before": {"", "uid-2", true, 2, "Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.host.SetUID(types.UID(c.was))
			w.start()
			w.courier.report = failed(delivery.Cut, envelope.Unknown, envelope.Unknown)
			w.reconcile()
			if got := w.get().Status.HostUID; got != c.was {
				t.Fatalf("sent to the host %q, want %q", got, c.was)
			}
			anew := w.host.DeepCopy()
			if err := w.client.Delete(t.Context(), w.host.DeepCopy()); err != nil {
				t.Fatal(err)
			}
			anew.SetUID(types.UID(c.is))
			anew.SetResourceVersion("")
			if err := w.client.Create(t.Context(), anew); err != nil {
				t.Fatal(err)
			}
			w.restart()
			w.courier.report, w.courier.memory, w.courier.recalled = succeeded(), delivery.NeverSeen, failed(delivery.Cut, envelope.Unknown, envelope.Unknown)
			w.now = w.now.Add(applyGrace)
			w.reconcile()
			w.wantSent(c.sent)
			if asked := len(w.courier.recalls) > 0; asked != c.asked {
				t.Errorf("asked: %v, want %v", asked, c.asked)
			}
			status := isTrue
			if c.reason != "Succeeded" {
				status = isFalse
			}
			w.want(v1alpha1.ConditionSucceeded, status, c.reason, "")
		})
	}
}

func TestWhatTheHostNeverStartedIsSentAgainOnlyIfItStillMay(t *testing.T) {
	cases := map[string]struct {
		meanwhile func(w *world, run *v1alpha1.HostRun, profile *unstructured.Unstructured)
		reason    string
	}{
		"it was cancelled": {func(_ *world, run *v1alpha1.HostRun, _ *unstructured.Unstructured) { run.Spec.Cancel = true }, "Cancelled"},
		"the script changed": {func(_ *world, _ *v1alpha1.HostRun, p *unstructured.Unstructured) {
			set(p, "id\n", "spec", "scripts", "join")
		}, "BytesChanged"},
		"the profile is gone": {func(w *world, _ *v1alpha1.HostRun, p *unstructured.Unstructured) {
			if err := w.client.Delete(w.t.Context(), p.DeepCopy()); err != nil {
				w.t.Fatal(err)
			}
		}, "ProfileNotFound"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start()
			w.courier.report = failed(delivery.Cut, envelope.Unknown, envelope.Unknown)
			w.reconcile()
			run, profile := w.get(), w.profile.DeepCopy()
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(profile), profile); err != nil {
				t.Fatal(err)
			}
			c.meanwhile(w, run, profile)
			for _, o := range []client.Object{run, profile} {
				if err := w.client.Update(t.Context(), o); client.IgnoreNotFound(err) != nil {
					t.Fatal(err)
				}
			}
			w.courier.report, w.courier.memory, w.courier.recalled = succeeded(), delivery.NeverSeen, failed(delivery.Cut, envelope.Unknown, envelope.Unknown)
			w.now = w.now.Add(applyGrace)
			w.reconcile()
			w.wantSent(1)
			w.want(v1alpha1.ConditionSucceeded, isFalse, c.reason, "")
			if text := condition(w.get(), v1alpha1.ConditionSucceeded).Message; strings.Contains(text, "unknown") {
				t.Fatalf("the host said that it never started it, and the run says: %s", text)
			}
		})
	}
}

// A relay that dies between its write and the host's answer leaves only the write.
func TestARelayThatDiesWhileSendingDoesNotSendAgain(t *testing.T) {
	w := newWorld(t)
	w.start()
	const died = "killed"
	w.courier.onDeliver = func() { panic(died) }
	func() {
		defer func() {
			if recover() != died {
				t.Fatal("did not die")
			}
		}()
		w.reconcile()
	}()
	w.courier.onDeliver = nil
	w.restart()
	w.courier.memory, w.courier.recalled = delivery.Running, failed(delivery.Cut, envelope.Unknown, envelope.Unknown)
	w.reconcile()
	w.wantSent(1)
	w.courier.memory, w.courier.recalled = delivery.Ended, failed(delivery.Succeeded, 0, 0)
	w.reconcile()
	w.wantSent(1)
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
}

func TestNothingIsSentWhenTheIntentCannotBeWritten(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.courier.onCommit = func() {
		other := w.get()
		other.Spec.Cancel = true
		if err := w.client.Update(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	asked := false
	w.courier.onDeliver = func() { asked = true }
	result, err := w.r.Reconcile(t.Context(), requestOf(w.run))
	if err != nil || asked || result.RequeueAfter == 0 {
		t.Fatalf("%v, asked %t, comes back after %s", err, asked, result.RequeueAfter)
	}
	w.courier.onCommit = nil
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isFalse, "Cancelled", "")
}

func TestTheEndIsWrittenOverAChangeOfTheSpec(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.courier.onDeliver = func() {
		other := w.get()
		other.Spec.Cancel = true
		if err := w.client.Update(t.Context(), other); err != nil {
			t.Fatal(err)
		}
	}
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
	if !w.get().Spec.Cancel {
		t.Fatal("the change of the spec was undone")
	}
}

func TestARunThatWasSentIsGivenUpOnlyAfterItsScriptsTime(t *testing.T) {
	unknown := envelope.Unknown
	w := newWorld(t)
	w.run.Spec.DeadlineSeconds = 60
	w.start()
	w.courier.report = failed(delivery.Cut, unknown, unknown)
	w.courier.memory, w.courier.recalled = delivery.Running, failed(delivery.Cut, unknown, unknown)
	w.reconcile()
	w.now = w.now.Add(2 * time.Minute)
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isUnknown, "Cut", "")
	w.now = w.now.Add(time.Hour) // a warrant may let it run for two
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isUnknown, "Cut", "")
	w.now = w.now.Add(2 * time.Hour)
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isFalse, "DeadlineExceeded", "whether it ran is unknown")
	w.wantSent(1)
}

// TestALateRunIsAskedAboutOnce: a relay that was away past the deadline loses no end that the host remembers.
func TestALateRunIsAskedAboutOnce(t *testing.T) {
	unknown := envelope.Unknown
	for name, c := range map[string]struct {
		memory   delivery.Memory
		recalled delivery.Report
		status   metav1.ConditionStatus
		reason   string
	}{
		"it ended":             {delivery.Ended, delivery.Report{Result: delivery.Succeeded, ScriptExit: 0, Trailer: delivery.None}, metav1.ConditionTrue, "Succeeded"},
		"it never started":     {delivery.NeverSeen, failed(delivery.Cut, unknown, unknown), isFalse, "DeadlineExceeded"},
		"nobody can be asked":  {delivery.NotAsked, failed(delivery.Unreachable, unknown, unknown), isFalse, "DeadlineExceeded"},
		"the host cannot tell": {delivery.Lost, failed(delivery.Cut, unknown, unknown), isFalse, "Cut"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.run.Spec.DeadlineSeconds = 60
			w.start()
			w.courier.report = failed(delivery.Cut, unknown, unknown)
			w.courier.memory, w.courier.recalled = delivery.Running, failed(delivery.Cut, unknown, unknown)
			w.reconcile()
			w.courier.memory, w.courier.recalled = c.memory, c.recalled
			w.now = w.now.Add(time.Hour)
			w.reconcile()
			w.want(v1alpha1.ConditionSucceeded, c.status, c.reason, "")
			w.wantSent(1)
		})
	}
}

// held is deleted, and a finalizer that is not ours holds it.
func (w *world) held() {
	w.t.Helper()
	run := w.get()
	run.Finalizers = []string{"example.com/hold"}
	if err := w.client.Update(w.t.Context(), run); err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.Delete(w.t.Context(), run); err != nil {
		w.t.Fatal(err)
	}
	if w.get().DeletionTimestamp == nil {
		w.t.Fatal("not under deletion")
	}
}

func TestADeletedRunThatWasNotSentEnds(t *testing.T) {
	w := newWorld(t)
	w.start()
	w.held()
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isFalse, "Cancelled", "deleted before it was sent")
	w.wantSent(0)
	near := newWorld(t)
	near.run.Finalizers = []string{"example.com/hold"}
	near.start()
	near.reconcile()
	near.wantSent(1)
}

func TestADeletedRunThatWasSentIsAskedAboutUntilItsDeadline(t *testing.T) {
	unknown := envelope.Unknown
	cases := map[string]struct {
		memory  delivery.Memory
		report  delivery.Report
		later   time.Duration
		state   metav1.ConditionStatus
		reason  string
		text    string
		recalls int
	}{
		"it is running":             {delivery.Running, failed(delivery.Cut, unknown, unknown), 0, isUnknown, "Cut", "", 1},
		"it ended":                  {delivery.Ended, failed(delivery.Succeeded, 0, 0), 0, isTrue, "Succeeded", "", 1},
		"the host never started it": {delivery.NeverSeen, failed(delivery.Cut, unknown, unknown), 0, isFalse, "Cancelled", "deleted, and the host never started it", 1},
		"it runs past its time":     {delivery.Running, failed(delivery.Cut, unknown, unknown), time.Hour, isUnknown, "Cut", "", 1},
		"its time is over":          {delivery.Running, failed(delivery.Cut, unknown, unknown), 3 * time.Hour, isFalse, "DeadlineExceeded", "whether it ran is unknown", 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start()
			w.courier.report = failed(delivery.Cut, unknown, unknown)
			w.reconcile()
			w.held()
			w.now = w.now.Add(c.later)
			w.courier.report, w.courier.memory, w.courier.recalled = succeeded(), c.memory, c.report
			result := w.reconcile()
			w.wantSent(1)
			w.want(v1alpha1.ConditionSucceeded, c.state, c.reason, c.text)
			if len(w.courier.recalls) != c.recalls || (result.RequeueAfter > 0) != (c.state == isUnknown) {
				t.Fatalf("%d questions, comes back after %s", len(w.courier.recalls), result.RequeueAfter)
			}
		})
	}
}

func TestFinishedRunsAreDeletedAfterTheirTime(t *testing.T) {
	w := newWorld(t)
	ttl := int32(60)
	w.run.Spec.TTLSecondsAfterFinished = &ttl
	w.run.UID = "uid-1"
	w.start()
	w.reconcile()
	if got := w.keepTime(); got.RequeueAfter != time.Minute {
		t.Fatalf("comes back after %s", got.RequeueAfter)
	}
	w.now = w.now.Add(time.Minute)
	w.keepTime()
	var run v1alpha1.HostRun
	if err := w.client.Get(context.Background(), client.ObjectKeyFromObject(w.run), &run); !apierrors.IsNotFound(err) {
		t.Fatalf("still there: %v", err)
	}
	w.keepTime()
	w.reconcile()
	w.wantSent(1)
}

// fakeStatements plays what the roots say.
type fakeStatements struct {
	telling Telling
	err     error
}

func (f *fakeStatements) Before(context.Context, *object.Host, transport.Target) (Telling, error) {
	return f.telling, f.err
}

func TestAHostIsToldBeforeItsRun(t *testing.T) {
	w := newWorld(t)
	w.start()
	f := &fakeStatements{err: errors.New("the API server does not answer")}
	w.r.Statements = f
	if _, err := w.r.Reconcile(t.Context(), requestOf(w.run)); err == nil {
		t.Fatal("a run goes on although nobody knows what its host is to be told")
	}
	w.wantSent(0)

	var heard []delivery.StatementReport
	f.err, f.telling = nil, Telling{
		Statements: []statement.Signed{{Text: []byte("news")}},
		Heard:      func(r []delivery.StatementReport) { heard = r },
	}
	w.courier.report.Statements = []delivery.StatementReport{{Kind: statement.KindRevoke, Serial: 5, Result: delivery.Applied}}
	w.reconcile()
	w.wantSent(1)
	if got := w.courier.deliveries[0].Statements; len(got) != 1 || string(got[0].Text) != "news" {
		t.Errorf("sent with %q", got)
	}
	if len(heard) != 1 || heard[0].Serial != 5 {
		t.Errorf("heard %+v", heard)
	}
}
