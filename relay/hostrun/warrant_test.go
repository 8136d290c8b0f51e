package hostrun

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// serialOfTests is what warranted profiles have.
const serialOfTests = 7

// declare gives each phase a warrant with the params, and signs join.
func (w *world) declare(params ...string) {
	w.t.Helper()
	for _, phase := range script.Phases() {
		anywhere, err := warrant.ParseTarget("any")
		if err != nil {
			w.t.Fatal(err)
		}
		block := &warrant.Warrant{
			Profile: w.profile.GetName(), Phase: phase, Serial: serialOfTests,
			NotAfter: w.now.Add(24 * time.Hour).Unix(), Targets: []warrant.Target{anywhere}, Timeout: 120,
		}
		for _, words := range params {
			p, err := warrant.ParseParam(words)
			if err != nil {
				w.t.Fatal(err)
			}
			block.Params = append(block.Params, p)
		}
		text, err := warrant.Set([]byte(scriptOf(phase)), block)
		if err != nil {
			w.t.Fatal(err)
		}
		set(w.profile, string(text), "spec", "scripts", string(phase))
		if phase == script.Join {
			set(w.profile, testkit.Sign(w.t, w.signer, script.Namespace, text), "spec", "signatures", string(phase))
		}
	}
	set(w.profile, strconv.Itoa(serialOfTests), "spec", "version")
}

// joinSecret stores the Secret that the run's secretRef names.
func (w *world) joinSecret(data map[string][]byte) {
	w.run.Spec.SecretRef = &v1alpha1.ObjectRef{Name: "join"}
	w.more = append(w.more, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "pool", Name: "join"}, Data: data})
}

const (
	declaresDNS   = "KPSSH_VAR_clusterDNS required type ip"
	declaresToken = "KPSSH_SECRET_API_TOKEN required secret re [a-z0-9.]{8,40}"
	theToken      = "s3cr3t.of.the.join"
)

func TestAWarrantSaysWhatIsSent(t *testing.T) {
	w := newWorld(t)
	w.declare(declaresDNS, declaresToken)
	w.joinSecret(map[string][]byte{"api-token": []byte(theToken)})
	w.courier.report.Transcript = "whatever the courier kept"
	w.start()
	w.reconcile()
	w.want(v1alpha1.ConditionSucceeded, isTrue, "Succeeded", "")
	o := w.courier.deliveries[0]
	params, err := envelope.DecodeParams(o.Envelope.Params)
	if err != nil || params["KPSSH_SECRET_API_TOKEN"] != theToken || params["KPSSH_VAR_clusterDNS"] != "10.0.0.10" || len(params) != 11 {
		t.Fatalf("sent %d params, %v", len(params), err)
	}
	if diff := cmp.Diff([]string{theToken}, o.Secrets); diff != "" {
		t.Errorf("what must not show: %s", diff)
	}
	status := w.get().Status
	if status.Serial == nil || *status.Serial != serialOfTests {
		t.Errorf("serial %v", status.Serial)
	}
	if strings.Contains(fmt.Sprint(status), theToken) {
		t.Error("the status holds the secret")
	}
}

func TestAWarrantRefusesWhatItDoesNotDeclare(t *testing.T) {
	token := map[string][]byte{"api-token": []byte(theToken)}
	cases := map[string]struct {
		declared []string
		secret   map[string][]byte
		reason   string
		text     string
	}{
		"a var that it does not declare":    {nil, nil, "ParamUndeclared", "clusterDNS"},
		"a var of another type":             {[]string{"KPSSH_VAR_clusterDNS required type int"}, nil, "ParamInvalid", "KPSSH_VAR_clusterDNS"},
		"a token that is no secret":         {[]string{declaresDNS, "KPSSH_BOOTSTRAP_TOKEN required type text"}, nil, "ParamInvalid", "KPSSH_BOOTSTRAP_TOKEN is required"},
		"a required secret without Secret":  {[]string{declaresDNS, declaresToken}, nil, "ParamInvalid", "KPSSH_SECRET_API_TOKEN is required"},
		"a node name that is not its enum":  {[]string{declaresDNS, "KPSSH_NODE_NAME required enum pool-2"}, nil, "ParamInvalid", "KPSSH_NODE_NAME"},
		"a secret that it does not declare": {[]string{declaresDNS}, token, "ParamUndeclared", "KPSSH_SECRET_API_TOKEN"},
		"a secret declared without secret":  {[]string{declaresDNS, "KPSSH_SECRET_API_TOKEN required type text"}, token, "ParamUndeclared", "declare secret"},
		"a secret value of another form":    {[]string{declaresDNS, declaresToken}, map[string][]byte{"api-token": []byte("S3CR3T")}, "ParamInvalid", "KPSSH_SECRET_API_TOKEN"},
		"a secret value with a line feed":   {[]string{declaresDNS, declaresToken}, map[string][]byte{"api-token": []byte(theToken + "\n")}, "ParamInvalid", "KPSSH_SECRET_API_TOKEN"},
		"two keys of one name":              {[]string{declaresDNS, declaresToken}, map[string][]byte{"api-token": []byte(theToken), "api.token": []byte(theToken)}, "ParamInvalid", "two keys"},
		"a secret and no warrant":           {nil, token, "ParamUndeclared", "has no warrant"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if name != "a secret and no warrant" {
				w.declare(c.declared...)
			}
			if c.secret != nil {
				w.joinSecret(c.secret)
			}
			w.start()
			w.reconcile()
			w.wantSent(0)
			w.want(v1alpha1.ConditionSucceeded, isFalse, c.reason, c.text)
			status := w.get().Status
			if status.RunID != "" || strings.Contains(fmt.Sprint(status), theToken) || strings.Contains(fmt.Sprint(status), "S3CR3T") {
				t.Fatalf("status %+v", status)
			}
		})
	}
}

func TestAJoinSecretThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	w.declare(declaresDNS, declaresToken)
	w.run.Spec.SecretRef = &v1alpha1.ObjectRef{Name: "join"}
	w.start()
	w.now = w.now.Add(applyGrace)
	w.reconcile()
	w.wantSent(0)
	w.want(v1alpha1.ConditionSucceeded, isFalse, "SecretNotFound", `"join"`)
}

func TestTheRelayWaitsAsLongAsTheWarrantAllows(t *testing.T) {
	long := &warrant.Warrant{Phase: script.Uninstall, Timeout: 3600}
	if got := runTime(v1alpha1.HostRunUninstall, "", long); got != time.Hour+runMargin {
		t.Errorf("an hour by the warrant: %s", got)
	}
	short := &warrant.Warrant{Phase: script.Join, Timeout: 10}
	if got := runTime(v1alpha1.HostRunJoin, "20m", short); got != 20*time.Minute+runMargin {
		t.Errorf("less by the warrant: %s", got)
	}
}

// Every no of a host is final, whatever it is about: asked again, it would say it again. A busy host said no such thing.
func TestARefusalOfTheHostIsFinal(t *testing.T) {
	for code := envelope.ExitCode(0); code < 24; code++ {
		if !code.Refused() {
			continue
		}
		w := newWorld(t)
		w.courier.report = failed(delivery.Refused, int(code), envelope.Unknown)
		w.start()
		if result := w.reconcile(); result.RequeueAfter > 0 {
			t.Errorf("exit code %d: comes back after %s", code, result.RequeueAfter)
		}
		w.want(v1alpha1.ConditionSucceeded, isFalse, "Refused", "as told")
		w.want(v1alpha1.ConditionDelivered, isTrue, reasonDelivered, "")
		if got := w.get().Status.ShimExitCode; got == nil || *got != int32(code) {
			t.Errorf("exit code %d: the status says %v", code, got)
		}
		w.reconcile()
		w.restart()
		w.reconcile()
		w.wantSent(1)
	}
	busy := newWorld(t)
	busy.courier.report = failed(delivery.Busy, int(envelope.ExitBusy), envelope.Unknown)
	busy.start()
	busy.reconcile()
	busy.want(v1alpha1.ConditionSucceeded, isUnknown, "Busy", "as told")
	busy.reconcile()
	busy.wantSent(2)
}
