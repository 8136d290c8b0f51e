//go:build linux

package e2e

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/e2e/product"
	"github.com/hostwarrant/hostwarrant/internal/envelope"
	kpssh "github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/relay/delivery"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const pool = courier.Namespace

// courierWorld is the installed product in a lab of its own.
type courierWorld struct{ *courier.World }

func newCourierWorld(t *testing.T) *courierWorld {
	t.Helper()
	ctx, l, cp := ownLab(t, lab.ControlPlaneOptions{})
	return &courierWorld{courier.New(ctx, t, l, cp)}
}

func TestRelayTakesRunsToRealHosts(t *testing.T) {
	w := newCourierWorld(t)
	h := w.Host(t, "host-a")
	t.Run("a signed join runs as root and tells", func(t *testing.T) { w.joins(t, h) })
	t.Run("runs that reach no host", func(t *testing.T) { w.reachNoHost(t, h) })
	t.Run("a silent port", func(t *testing.T) { w.silentPort(t) })
	t.Run("a script altered on the wire", func(t *testing.T) { w.alteredOnTheWire(t, h) })
	t.Run("a signer the host does not know", func(t *testing.T) { w.unknownSigner(t) })
	t.Run("what a host alone knows", func(t *testing.T) { w.hostKnowsBetter(t) })
	t.Run("scripts that end in their own way", func(t *testing.T) { w.endings(t, h) })
	t.Run("much output", func(t *testing.T) { w.muchOutput(t, h) })
	t.Run("a relay that is killed half-way", func(t *testing.T) { w.killedHalfWay(t, h) })
	t.Run("what a user sees", func(t *testing.T) { w.printed(t) })
	t.Run("a probe", func(t *testing.T) { w.probes(t) })
	t.Run("hosts in migration", func(t *testing.T) { w.migration(t) })
}

func (w *courierWorld) joins(t *testing.T, h *lab.Host) {
	w.Profile(t, "marker", "echo \"joining as $KPSSH_NODE_NAME on $KPSSH_HOST_ADDRESS, $KPSSH_VAR_color\"\nid -u\nprintf '%s' \"$KPSSH_NODE_NAME\" >/root/marker\n", "KPSSH_VAR_color optional enum green blue")
	w.Run(t, "marker", "host-a", "marker", func(r *v1alpha1.HostRun) { r.Spec.Vars = map[string]v1alpha1.HostRunVar{"color": "green"} })
	r := w.Ended(t, "marker", "Succeeded", 0, 0)
	if got, err := h.ReadFile("/root/marker"); err != nil || string(got) != "pool-1" {
		t.Fatalf("marker %q, %v", got, err)
	}
	want := fmt.Sprintf("joining as pool-1 on %s, green\n0\n", h.Addr)
	if r.Status.Serial == nil || *r.Status.Serial != 1 {
		t.Errorf("serial %v", r.Status.Serial)
	}
	if mark, err := h.ReadFile("/var/lib/hostwarrant/marks/marker"); err != nil || !strings.HasPrefix(string(mark), "serial 1\n") {
		t.Errorf("the host's mark is %q, %v", mark, err)
	}
	if r.Status.TranscriptTail != want || r.Status.Trailer != v1alpha1.TrailerWhole || r.Status.Attempts != 1 || !strings.HasPrefix(r.Status.ScriptDigest, "sha256:") {
		t.Fatalf("status %+v", r.Status)
	}
	for _, kind := range []string{v1alpha1.ConditionVerified, v1alpha1.ConditionDelivered} {
		if c := courier.ConditionOf(r, kind); c.Status != metav1.ConditionTrue {
			t.Errorf("%s is %s", kind, c.Status)
		}
	}
	if strings.Contains(fmt.Sprint(r.Status), string(w.Login.PEM)) {
		t.Error("the status holds the login key")
	}
}

func (w *courierWorld) reachNoHost(t *testing.T, h *lab.Host) {
	w.Profile(t, "touch", "touch /root/touched\n")
	other := testkit.NewSigner(t, "ed25519")
	w.Object(t, "unpinned", h.Addr.String(), "")
	w.Object(t, "fingerprint", h.Addr.String(), "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU")
	w.Object(t, "other-key", h.Addr.String(), h.Addr.String()+" "+other.Line)
	cases := map[string]struct{ host, profile, reason string }{
		"unknown-host":    {"nowhere", "touch", "HostNotFound"},
		"unknown-profile": {"host-a", "nothing", "ProfileNotFound"},
		"no-pin":          {"unpinned", "touch", "HostKeyNotPinned"},
		"a-fingerprint":   {"fingerprint", "touch", "HostKeyNotPinned"},
		"another-key":     {"other-key", "touch", "HostKeyMismatch"},
	}
	for name, c := range cases {
		w.Run(t, name, c.host, c.profile, nil)
	}
	for name, c := range cases {
		r := w.Ended(t, name, c.reason, -1, -1)
		if d := courier.ConditionOf(r, v1alpha1.ConditionDelivered); d.Status == metav1.ConditionTrue || d.Status == metav1.ConditionUnknown {
			t.Errorf("%s: Delivered is %s", name, d.Status)
		}
	}
	if _, err := h.ReadFile("/root/touched"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("something ran: %v", err)
	}
}

// A port that takes connections and says nothing: the kernel does so for an sshd
// that is stopped.
func (w *courierWorld) silentPort(t *testing.T) {
	h := w.Host(t, "host-silent")
	r, err := h.Exec(t.Context(), nil, "sh", "-c", "for p in /proc/[0-9]*; do if [ \"$(cat $p/comm 2>/dev/null)\" = sshd ]; then kill -STOP ${p#/proc/}; fi; done")
	if err != nil || r.Code != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	w.Run(t, "silent", "host-silent", "touch", func(r *v1alpha1.HostRun) { r.Spec.DeadlineSeconds = 45 })
	got := w.Ended(t, "silent", "DeadlineExceeded", -1, -1)
	if c := courier.ConditionOf(got, v1alpha1.ConditionSucceeded); !strings.Contains(c.Message, "Unreachable") || got.Status.Attempts < 1 {
		t.Fatalf("%+v", got.Status)
	}
}

// altered sends what a relay never sends: a signed profile's script with one byte
// changed after it was judged.
func (w *courierWorld) alteredOnTheWire(t *testing.T, h *lab.Host) {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("karpenter.dklesev.github.io/v1beta1")
	u.SetKind("SSHJoinProfile")
	must(t, w.Client.Get(t.Context(), client.ObjectKey{Name: "touch"}, u))
	raw, err := u.MarshalJSON()
	must(t, err)
	p, err := kpssh.ParseJoinProfile(raw)
	must(t, err)
	send := func(text string) delivery.Report {
		id, err := envelope.NewRunID(rand.Reader)
		must(t, err)
		report, err := delivery.Deliver(t.Context(), delivery.Order{
			Target: h.Target(t, w.Login.PEM), Limits: lab.RelayLimits(),
			Envelope: envelope.Envelope{Phase: envelope.PhaseJoin, RunID: id, Params: []byte{}, Sig: []byte(p.Signatures[script.Join]), Script: []byte(text)},
		}, func() error { return nil })
		must(t, err)
		return report
	}
	text := p.Scripts[script.Join]
	for name, c := range map[string]struct {
		changed string
		want    envelope.ExitCode
	}{
		"one byte":            {strings.Replace(text, "touched", "touchem", 1), envelope.ExitSignature},
		"a lost line feed":    {strings.TrimSuffix(text, "\n"), envelope.ExitSignature},
		"a longer validity":   {strings.Replace(text, "#warrant: not-after 1", "#warrant: not-after 2", 1), envelope.ExitSignature},
		"another class":       {strings.Replace(text, "target class default", "target any", 1), envelope.ExitSignature},
		"no warrant any more": {regexp.MustCompile("(?m)^#warrant: .*\n").ReplaceAllString(text, ""), envelope.ExitSignature},
		"CRLF":                {strings.ReplaceAll(text, "\n", "\r\n"), envelope.ExitWarrant},
	} {
		if c.changed == text {
			t.Fatalf("%s: nothing is changed", name)
		}
		if r := send(c.changed); r.Result != delivery.Refused || r.ShimExit != int(c.want) {
			t.Errorf("%s: want %d, got %+v", name, c.want, r)
		}
	}
	if _, err := h.ReadFile("/root/touched"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("something ran: %v", err)
	}
	if r := send(text); r.Result != delivery.Succeeded || r.Trailer != delivery.Whole {
		t.Fatalf("the same script unaltered: %+v", r)
	}
}

func (w *courierWorld) unknownSigner(t *testing.T) {
	w.HostWith(t, "host-b", func(o *lab.HostOptions) {
		o.AllowedSigners = "join@* namespaces=\"kpssh\" " + testkit.NewSigner(t, "ed25519").Line + "\n"
	})
	w.Run(t, "unknown-signer", "host-b", "touch", nil)
	r := w.Ended(t, "unknown-signer", "Refused", 2, -1)
	if !strings.Contains(r.Status.TranscriptTail, "kpssh-shim: verify:") {
		t.Fatalf("output %q", r.Status.TranscriptTail)
	}
}

// hostKnowsBetter puts a join that the cluster vouches for to hosts that must refuse it: the run ends so, and is not sent again.
func (w *courierWorld) hostKnowsBetter(t *testing.T) {
	edit := func(old, new string) func(*lab.HostOptions) {
		return func(o *lab.HostOptions) { o.ShimConf = strings.Replace(o.ShimConf, old, new, 1) }
	}
	file := func(name, text string) func(*lab.HostOptions) {
		return func(o *lab.HostOptions) { o.TrustFiles[name] = text }
	}
	cases := []struct {
		name   string
		change func(*lab.HostOptions)
		code   envelope.ExitCode
	}{
		{"of-another-cluster", file("cluster", "id other\nendpoint https://192.0.2.9:6443\nca-sha256 "+strings.Repeat("0", 64)+"\n"), envelope.ExitParam},
		{"of-another-class", edit("class=default", "class=bm"), envelope.ExitTarget},
		{"with-old-signers", func(o *lab.HostOptions) {
			o.ShimConf = regexp.MustCompile("signers-expire=.*").ReplaceAllString(o.ShimConf, "signers-expire=1700000000")
		}, envelope.ExitExpired},
		{"for-short-terms", edit("max-validity=90d", "max-validity=30d"), envelope.ExitExpired},
		{"with-a-floor", file("floors", "* 0\nvouched-for 2\n"), envelope.ExitRollback},
		{"without-a-floor", file("floors", ""), envelope.ExitState},
		{"without-settings", func(o *lab.HostOptions) { o.ShimConf = "warrant=required\n" }, envelope.ExitPreflight},
	}
	w.Profile(t, "vouched-for", "true\n")
	for _, c := range cases {
		w.HostWith(t, c.name, c.change)
		w.Run(t, c.name, c.name, "vouched-for", nil)
	}
	for _, c := range cases {
		r := w.Ended(t, c.name, "Refused", int32(c.code), -1)
		if r.Status.Attempts != 1 || courier.ConditionOf(r, v1alpha1.ConditionDelivered).Status != metav1.ConditionTrue {
			t.Errorf("%s: %+v", c.name, r.Status)
		}
	}
}

// migration: the cluster takes scripts without a warrant for a while, and only a host that says so runs them.
func (w *courierWorld) migration(t *testing.T) {
	w.RewritePolicy(t.Context(), t, map[string]string{"    version: 1\n": "    version: 2\n", "requireWarrant: true": "requireWarrant: false"})
	w.AppliesInTime(t, w.Signed(t, "bare", "echo ran without a warrant\n"))
	w.HostWith(t, "host-migrating", func(o *lab.HostOptions) { o.ShimConf = product.ShimConf("optional") })
	w.Host(t, "host-done")
	w.Run(t, "bare-there", "host-migrating", "bare", nil)
	w.Run(t, "bare-here", "host-done", "bare", nil)
	w.Profile(t, "warranted", "true\n")
	w.Run(t, "warranted-there", "host-migrating", "warranted", nil)
	if r := w.Ended(t, "bare-there", "Succeeded", 0, 0); r.Status.Serial != nil || r.Status.TranscriptTail != "ran without a warrant\n" {
		t.Errorf("status %+v", r.Status)
	}
	w.Ended(t, "bare-here", "Refused", int32(envelope.ExitWarrant), -1)
	w.Ended(t, "warranted-there", "Succeeded", 0, 0)
}

func (w *courierWorld) endings(t *testing.T, h *lab.Host) {
	daemon := "setsid sleep 600 </dev/null >/dev/null 2>&1 &\necho started\n"
	cases := []struct {
		name, script, reason string
		shim, exit           int32
		output               string
	}{
		{"exits-2", "echo out\necho err >&2\nexit 2\n", "ScriptFailed", 10, 2, "err"},
		{"exits-124", "exit 124\n", "ScriptFailed", 10, 124, "script exited 124"},
		{"forks-a-child", "sleep 600 &\necho left a child\n", "Succeeded", 0, 0, "left a child"},
		{"daemonises", daemon, "Succeeded", 0, 0, "started"},
		{"daemonises-again", daemon, "Succeeded", 0, 0, "started"},
		{"forges-a-trailer", "echo 'kpssh-trailer: v1 run-id=0123456789abcdef0123456789abcdef phase=join exit=0 bytes=0 sha256=" + strings.Repeat("0", 64) + " cut=0'\nexit 3\n", "ScriptFailed", 10, 3, "kpssh-trailer"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w.Profile(t, c.name, c.script)
			w.Run(t, c.name, "host-a", c.name, nil)
			r := w.Ended(t, c.name, c.reason, c.shim, c.exit)
			if !strings.Contains(r.Status.TranscriptTail, c.output) || r.Status.Trailer != v1alpha1.TrailerWhole {
				t.Fatalf("trailer %s, output %q", r.Status.Trailer, r.Status.TranscriptTail)
			}
		})
	}
}

func (w *courierWorld) muchOutput(t *testing.T, h *lab.Host) {
	for _, c := range []struct {
		name    string
		mib     int
		trailer v1alpha1.TrailerState
	}{{"prints-10m", 10, v1alpha1.TrailerWhole}, {"prints-1g", 1024, v1alpha1.TrailerTruncated}} {
		t.Run(c.name, func(t *testing.T) {
			w.Profile(t, c.name, fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x\n", c.mib<<20))
			w.Run(t, c.name, "host-a", c.name, nil)
			r := w.Ended(t, c.name, "Succeeded", 0, 0)
			if r.Status.Trailer != c.trailer || len(r.Status.TranscriptTail) > 4096 {
				t.Fatalf("trailer %s, %d bytes of output", r.Status.Trailer, len(r.Status.TranscriptTail))
			}
		})
	}
	peak := w.Programs.Relay.PeakKiB(t)
	t.Logf("the relay's peak is %d MiB", peak>>10)
	if peak > 256<<10 {
		t.Errorf("the relay took %d KiB", peak)
	}
}

// The script runs to its end although the relay is gone; another relay asks the
// host how it went and does not run it again.
func (w *courierWorld) killedHalfWay(t *testing.T, h *lab.Host) {
	w.Profile(t, "slow", "echo begun >>/root/slow\nwhile [ ! -e /root/go ]; do sleep 0.1; done\necho ended >>/root/slow\nexit 5\n")
	w.Run(t, "slow", "host-a", "slow", nil)
	w.Until(t, "slow", time.Minute, func(r *v1alpha1.HostRun) bool {
		text, err := h.ReadFile("/root/slow")
		return err == nil && string(text) == "begun\n" && courier.ConditionOf(r, v1alpha1.ConditionDelivered).Status == metav1.ConditionUnknown
	})
	must(t, w.Programs.Relay.Kill())
	must(t, h.WriteFile("/root/go", nil, 0o600))
	relay, err := w.Product.StartRelay(t.Context())
	must(t, err)
	w.Programs.Relay = relay
	r := w.Ended(t, "slow", "ScriptFailed", 10, 5)
	if text, err := h.ReadFile("/root/slow"); err != nil || string(text) != "begun\nended\n" {
		t.Fatalf("the script wrote %q, %v", text, err)
	}
	if c := courier.ConditionOf(r, v1alpha1.ConditionSucceeded); !strings.Contains(c.Message, "as the host recorded") || r.Status.Attempts != 1 || r.Status.Trailer != v1alpha1.TrailerNone {
		t.Fatalf("status %+v", r.Status)
	}
}

// probes asks a host's shim alone, which a HostRun without a profile does.
func (w *courierWorld) probes(t *testing.T) {
	w.Run(t, "probe", "host-a", "", func(r *v1alpha1.HostRun) {
		r.Spec = v1alpha1.HostRunSpec{HostRef: r.Spec.HostRef, Phase: v1alpha1.HostRunProbe}
	})
	r := w.Ended(t, "probe", "Succeeded", 0, -1)
	if lines := strings.Split(strings.TrimSpace(r.Status.TranscriptTail), "\n"); len(lines) < 3 || r.Status.ScriptDigest != "" {
		t.Errorf("status %+v", r.Status)
	}
	refused := &v1alpha1.HostRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: pool, Name: "probe-of-a-profile"},
		Spec:       v1alpha1.HostRunSpec{HostRef: r.Spec.HostRef, Phase: v1alpha1.HostRunProbe, ProfileRef: v1alpha1.ObjectRef{Name: "marker"}},
	}
	if err := w.Client.Create(t.Context(), refused); err == nil || !strings.Contains(err.Error(), "phase probe runs no script") {
		t.Errorf("error %v", err)
	}
}

func (w *courierWorld) printed(t *testing.T) {
	r, err := w.ControlPlane.Kubectl(t.Context(), nil, "-n", pool, "get", "hostrun", "marker", "unknown-signer")
	must(t, err)
	t.Logf("kubectl get hostrun:\n%s", r.Stdout)
	for _, want := range []string{"HOST", "PHASE", "PROFILE", "SUCCEEDED", "REASON", "Refused"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %s in\n%s%s", want, r.Stdout, r.Stderr)
		}
	}
	for _, c := range []struct{ args, want string }{
		{"get hostrun marker", "NAME HOST PHASE PROFILE SUCCEEDED REASON SHIM SCRIPT AGE"},
		{"get hostrun marker -o wide", "NAME HOST PHASE PROFILE SUCCEEDED REASON SHIM SCRIPT NODE JOINED JOIN REASON OUTPUT RUN AGE"},
		{"get hr marker --no-headers", "marker host-a join marker True Succeeded 0 0"},
		{"wait hostrun/marker --for=condition=Succeeded --timeout=30s", "hostrun.hostwarrant.dev/marker condition met"},
		{"wait hostrun/unknown-signer --for=condition=Succeeded=False --timeout=30s", "hostrun.hostwarrant.dev/unknown-signer condition met"},
		{"wait hostrun/unknown-signer --for=jsonpath={.status.finishedAt} --timeout=30s", "hostrun.hostwarrant.dev/unknown-signer condition met"},
	} {
		r, err := w.ControlPlane.Kubectl(t.Context(), nil, append([]string{"-n", pool}, strings.Fields(c.args)...)...)
		must(t, err)
		if first, _, _ := strings.Cut(r.Stdout, "\n"); !strings.HasPrefix(strings.Join(strings.Fields(first), " "), c.want) {
			t.Errorf("kubectl %s: %q %s; want %q", c.args, first, r.Stderr, c.want)
		}
	}
	testkit.Eventually(t, time.Minute, "the events of a run", func() bool {
		r, err := w.ControlPlane.Kubectl(t.Context(), nil, "-n", pool, "events", "--for", "hostrun/marker")
		must(t, err)
		return strings.Contains(r.Stdout, "Succeeded")
	})
	patched, err := w.ControlPlane.Kubectl(t.Context(), nil, "-n", pool, "patch", "hostrun", "marker", "--type=merge", "-p", `{"spec":{"nodeName":"other"}}`)
	must(t, err)
	if patched.Code == 0 || !strings.Contains(patched.Stderr, "nodeName is immutable") {
		t.Errorf("patching nodeName: %+v", patched)
	}
}
