//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/e2e/harness"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const classLabel = "karpenter.dklesev.github.io/host-class"

func TestTheHostClassLabelIsGuarded(t *testing.T) {
	i := install(t)
	const name = "h-class"
	i.succeeds(t, host(t, name, nil), "create", "-f", "-")
	i.remove(t, "-n", "pool", "sshhost", name)
	i.refused(t, nil, []string{"label", "-n", "pool", "sshhost", name, classLabel + "=gpu"}, "SSHHost/"+name+": ", "HostClassRefused: ")
	i.refused(t, withMeta(t, host(t, "h-class-2", nil), object{"labels": object{classLabel: "gpu"}}), []string{"create", "-f", "-"}, "HostClassRefused: ")
	i.succeeds(t, nil, "label", "-n", "pool", "sshhost", name, classLabel+"=bm")
	t.Run("under deletion too", func(t *testing.T) {
		i.succeeds(t, nil, "patch", "-n", "pool", "sshhost", name, "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/hold"]}}`)
		i.succeeds(t, nil, "delete", "-n", "pool", "sshhost", name, "--wait=false")
		i.refused(t, nil, []string{"label", "-n", "pool", "sshhost", name, "--overwrite", classLabel + "=gpu"}, "HostClassRefused: ")
		i.succeeds(t, nil, "label", "-n", "pool", "sshhost", name, "team=a")
	})
}

func TestAHostInANamespaceThatThePolicyDoesNotName(t *testing.T) {
	i := install(t)
	i.succeeds(t, []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"elsewhere"}}`), "apply", "-f", "-")
	i.refused(t, withMeta(t, host(t, "h-elsewhere", nil), object{"namespace": "elsewhere"}), []string{"create", "-f", "-"}, "SSHHost/h-elsewhere: ", "NamespaceRefused: ")
	i.succeeds(t, host(t, "h-elsewhere", nil), "create", "--dry-run=server", "-f", "-")
}

func TestANodeClassForAForeignClusterIsRefused(t *testing.T) {
	i := install(t)
	i.refused(t, nodeClass(t, "nc-foreign", object{"cluster": object{"endpoint": foreignEndpoint}}), []string{"create", "-f", "-"}, "SSHNodeClass/nc-foreign: ", "ClusterRefused: ")
	i.succeeds(t, nodeClass(t, "nc-foreign", nil), "create", "-f", "-")
	i.remove(t, "sshnodeclass", "nc-foreign")
	i.refused(t, nil, []string{"patch", "sshnodeclass", "nc-foreign", "--type=merge", "-p", `{"spec":{"cluster":{"endpoint":"` + foreignEndpoint + `"}}}`}, "ClusterRefused: ")
}

// serial is a profile with a warrant of a serial, which is also its version.
func serial(t *testing.T, i *installation, name string, n int64, params ...warrant.Param) []byte {
	t.Helper()
	raw := warranted(t, i, name, func(w *warrant.Warrant) {
		w.Serial = n
		w.Params = params
	})
	return []byte(strings.Replace(string(raw), `"version":"1"`, fmt.Sprintf(`"version":"%d"`, n), 1))
}

// mark is the serial that the ledger holds for a profile, "" for none.
func (i *installation) mark(t *testing.T, name string) string {
	t.Helper()
	return i.kubectl(t, nil, "get", "ledger", "profile."+name, "-o", "jsonpath={.spec.profile.serial}").Stdout
}

func (i *installation) marked(t *testing.T, name, want string) {
	t.Helper()
	eventually(t, "the ledger to hold serial "+want, func() bool { return i.mark(t, name) == want })
}

const greatest = 999999999999999

func TestASerialThatJumpsIsRefused(t *testing.T) {
	i := install(t)
	i.usualPolicy(t)
	const name = "p-jump"
	i.succeeds(t, serial(t, i, name, 5), "create", "-f", "-")
	t.Cleanup(func() { i.kubectl(t, nil, "delete", "ledger", "profile."+name) })
	i.remove(t, "sshjoinprofile", name)
	i.marked(t, name, "5")
	i.refused(t, serial(t, i, name, greatest), []string{"replace", "-f", "-"}, "SSHJoinProfile/"+name+": ", "SerialJump: ")
	i.refused(t, serial(t, i, name, 4), []string{"replace", "-f", "-"}, "SSHJoinProfile/"+name+": ", "SerialRollback: ")
	i.refused(t, serial(t, i, name, 5, warrant.Param{Name: "KPSSH_VAR_other", Matcher: warrant.Matcher{Kind: warrant.MatchType, Value: "dns1123"}}), []string{"replace", "-f", "-"}, "SerialReused: ")
	i.succeeds(t, serial(t, i, name, 6), "replace", "-f", "-")
	i.marked(t, name, "6")
	t.Run("admitted in warn mode, it moves no mark", func(t *testing.T) {
		i.newPolicy(t, warnMode(t), i.signer)
		r := i.succeeds(t, serial(t, i, name, greatest), "replace", "-f", "-")
		if !strings.Contains(r.Stderr, "would refuse: SSHJoinProfile/"+name+": ") || !strings.Contains(r.Stderr, "SerialJump") {
			t.Errorf("no warning says SerialJump: %s", r.Stderr)
		}
		time.Sleep(3 * time.Second) // what must not happen cannot be waited for
		if got := i.mark(t, name); got != "6" {
			t.Errorf("the ledger holds serial %s; want 6", got)
		}
		i.newPolicy(t, nil, i.signer)
		i.succeeds(t, serial(t, i, name, 7), "replace", "-f", "-")
		i.marked(t, name, "7")
	})
	t.Run("deleted and made again, it is no lower", func(t *testing.T) {
		i.succeeds(t, nil, "delete", "sshjoinprofile", name)
		i.refused(t, serial(t, i, name, 3), []string{"create", "-f", "-"}, "SerialRollback: ")
		i.succeeds(t, serial(t, i, name, 7), "create", "-f", "-")
	})
}

// TestADeletionWaitsForTheLedger: what verifies and is not yet remembered may not go.
func TestADeletionWaitsForTheLedger(t *testing.T) {
	i := install(t)
	const name = "p-pending"
	must(t, i.controller.Stop())
	i.succeeds(t, serial(t, i, name, 1), "create", "-f", "-")
	i.refused(t, nil, []string{"delete", "sshjoinprofile", name}, "SSHJoinProfile/"+name+": ", "LedgerPending: ")
	i.startController(t)
	i.marked(t, name, "1")
	eventually(t, "the deletion", func() bool { return i.kubectl(t, nil, "delete", "sshjoinprofile", name).Code == 0 })
}

// TestAProfileThatFiveHundredNodeClassesName: an update that breaks them all is a warning that names
// three, and comes in time.
func TestAProfileThatFiveHundredNodeClassesName(t *testing.T) {
	i := install(t)
	const name = "p-shared"
	i.succeeds(t, serial(t, i, name, 1), "create", "-f", "-")
	i.remove(t, "sshjoinprofile", name)
	t.Cleanup(func() {
		must(t, i.writer.Client().Resource(harness.NodeClasses()).DeleteCollection(soon(t), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "trial=shared"}))
	})
	const count = 500
	harness.Spread(count, 4, func(n int) {
		raw := withMeta(t, nodeClass(t, fmt.Sprintf("nc-shared-%03d", n), object{"joinProfileRef": object{"name": name}}), object{"labels": object{"trial": "shared"}})
		if err := i.writer.Apply(t.Context(), harness.NodeClasses(), raw); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	needs := warrant.Param{Name: "KPSSH_VAR_zone", Required: true, Matcher: warrant.Matcher{Kind: warrant.MatchType, Value: "dns1123"}}
	r := i.succeeds(t, serial(t, i, name, 2, needs), "replace", "-f", "-")
	t.Logf("an update that breaks %d node classes took %v:\n%s", count, in(began), r.Stderr)
	if !strings.Contains(r.Stderr, "nc-shared-") || !strings.Contains(r.Stderr, fmt.Sprintf("%d more node classes", count-3)) {
		t.Errorf("the warning is: %s", r.Stderr)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	i.succeeds(t, serial(t, i, name, 3), "replace", "-f", "-")
}

func TestHostRunsAreJudged(t *testing.T) {
	i := install(t)
	i.succeeds(t, host(t, "h-run", nil), "create", "-f", "-")
	i.remove(t, "-n", "pool", "sshhost", "h-run")
	i.succeeds(t, profile(t, "p-run", scripts(), signatures(t, i.signer, scripts())), "create", "-f", "-")
	i.remove(t, "sshjoinprofile", "p-run")
	for name, provider := range map[string]string{"pool-living": "kpssh://pool/another", "pool-ours": "kpssh://pool/h-run"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: provider}}
		_, err := i.cp.Client().CoreV1().Nodes().Create(soon(t), node, metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(func() { must(t, i.cp.Client().CoreV1().Nodes().Delete(soon(t), name, metav1.DeleteOptions{})) })
	}
	run := func(changes object) []byte {
		spec := object{"hostRef": object{"name": "h-run"}, "profileRef": object{"name": "p-run"}}
		for k, v := range changes {
			spec[k] = v
		}
		return hostRun(t, "trial-run", spec)
	}
	dry := []string{"create", "--dry-run=server", "-f", "-"}
	eventually(t, "the nodes to be known", func() bool {
		return strings.Contains(i.kubectl(t, run(object{"nodeName": "pool-living"}), dry...).Stderr, "NodeNameTaken")
	})
	for what, c := range map[string]struct {
		raw    []byte
		reason string
	}{
		"the name of a living node":              {run(object{"nodeName": "pool-living"}), "NodeNameTaken"},
		"a node name of another namespace":       {run(object{"nodeName": "farm-1"}), "NodeNameRefused"},
		"a node name of nobody":                  {run(object{"nodeName": "control-plane-0"}), "NodeNameRefused"},
		"a namespace that the policy leaves out": {withMeta(t, run(nil), object{"namespace": "kube-public"}), "NamespaceRefused"},
		"the host's own node":                    {run(object{"nodeName": "pool-ours"}), ""},
		"a free name":                            {run(object{"nodeName": "pool-free"}), ""},
		"a host that is not there yet":           {run(object{"hostRef": object{"name": "h-later"}}), ""},
	} {
		t.Run(what, func(t *testing.T) {
			if c.reason == "" {
				i.succeeds(t, c.raw, dry...)
				return
			}
			i.refused(t, c.raw, dry, "HostRun/trial-run: ", c.reason+": ")
		})
	}
	t.Run("a name that another run holds", func(t *testing.T) {
		i.succeeds(t, hostRun(t, "trial-first", object{"hostRef": object{"name": "h-first"}, "profileRef": object{"name": "p-run"}, "nodeName": "pool-held"}), "create", "-f", "-")
		i.remove(t, "-n", "pool", "hostrun", "trial-first")
		eventually(t, "the run to be known", func() bool {
			return strings.Contains(i.kubectl(t, run(object{"nodeName": "pool-held"}), dry...).Stderr, "NodeNameTaken")
		})
	})
	t.Run("a host class that is not of its namespace", func(t *testing.T) {
		i.usualPolicy(t)
		i.newPolicy(t, replace(t, "pool: {classes: [default, bm]", "pool: {classes: [bm]"), i.signer)
		i.refused(t, run(nil), dry, "HostRun/trial-run: ", "HostClassRefused: ")
	})
	t.Run("a profile that the class may not run", func(t *testing.T) {
		i.usualPolicy(t)
		i.newPolicy(t, replace(t, `profiles: {default: ["*"]`, `profiles: {default: ["tls-*"]`), i.signer)
		i.refused(t, run(nil), dry, "HostRun/trial-run: ", "ProfileRefused: ")
	})
}

// TestAnAnchorThatWasReplacedIsSeen starts a replica with other roots than the cluster remembers.
func TestAnAnchorThatWasReplacedIsSeen(t *testing.T) {
	i := install(t)
	eventually(t, "the ledger to hold the anchor", func() bool {
		return i.kubectl(t, nil, "get", "ledger", "policy", "-o", "jsonpath={.spec.policy.anchorDigest}").Stdout != ""
	})
	stranger := testkit.NewSigner(t, "ed25519")
	dir := t.TempDir()
	testkit.WriteFile(t, dir, "roots", []byte(stranger.Line+"\n"))
	testkit.WriteFile(t, dir, "cluster-id", []byte("e2e\n"))
	file := testkit.WriteFile(t, t.TempDir(), "policy.json", i.trustPolicy(t, policyDocument(t, i.version+1, stranger), stranger))
	address := freeAddress(t, i)
	p, err := i.product.StartWebhookAt(soon(t), "webhook-other-anchor", address, "--anchor="+dir, "--policy-file="+file)
	must(t, err)
	t.Cleanup(func() { must(t, p.Kill()) })
	eventually(t, "the replica to say AnchorChanged", func() bool {
		code, body := get(t, p.Health+"/readyz")
		return code == 503 && strings.Contains(body, "AnchorChanged")
	})
	poster := i.poster(t, address)
	eventually(t, "the serving certificate", func() bool {
		_, err := poster.Review(soon(t), "/validate", []byte("{}"))
		return err == nil || !strings.Contains(err.Error(), "posting to")
	})
	asks(t, poster, reviewOf(t, "CREATE", profile(t, "p-anchor", scripts(), signatures(t, stranger, scripts())), nil)).deny(t, "AnchorChanged")
}

// rejudgement is what the controller's log says of one pass over what is stored.
type rejudgement struct {
	Msg                    string
	Objects, Reads, Writes int
	Policy                 string
}

// TestAPolicyChangeConvergesOverAThousandObjects stores 1,000 profiles and 1,000 hosts and changes the
// policy so that no verdict changes.
func TestAPolicyChangeConvergesOverAThousandObjects(t *testing.T) {
	i := install(t)
	i.usualPolicy(t)
	count := times(200, 1000)
	signed := signatures(t, i.signer, scripts())
	marked := object{"labels": object{"trial": "many"}}
	t.Cleanup(func() {
		for _, c := range []struct{ resource, namespace string }{{"sshjoinprofiles", ""}, {"sshhosts", "pool"}} {
			args := []string{"delete", c.resource, "-l", "trial=many", "--wait=false"}
			if c.namespace != "" {
				args = append(args, "-n", c.namespace)
			}
			i.succeeds(t, nil, args...)
		}
	})
	harness.Spread(count, 4, func(n int) {
		if err := i.writer.Apply(t.Context(), harness.Profiles(), withMeta(t, profile(t, fmt.Sprintf("p-many-%d", n), scripts(), signed), marked)); err != nil {
			t.Error(err)
		}
		if err := i.writer.Apply(t.Context(), harness.Hosts(), withMeta(t, host(t, fmt.Sprintf("h-many-%d", n), nil), marked)); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	i.newPolicy(t, nil, i.signer)
	var last rejudgement
	eventually(t, "the controller to have judged everything by the new policy", func() bool {
		last = i.lastRejudgement(t)
		return last.Objects >= 2*count
	})
	t.Logf("%d stored objects were judged again within %v of the policy change: %+v", 2*count, in(began), last)
	const lists = 10 // of kinds, a page each
	// Two writes are no verdict's: the ledger's of the policy, and the policy's own condition.
	if time.Since(began) > time.Minute || last.Reads > last.Objects+lists || last.Writes > 2 {
		t.Errorf("%+v after %v; want at most one read for each object, two writes, one minute", last, in(began))
	}
}

// lastRejudgement is the controller's last pass that was by the policy in force.
func (i *installation) lastRejudgement(t *testing.T) rejudgement {
	t.Helper()
	_, body := get(t, i.webhook.Health+"/policyz")
	text, err := os.ReadFile(i.controller.Log)
	must(t, err)
	var last rejudgement
	for line := range bytes.Lines(text) {
		var r rejudgement
		if json.Unmarshal(line, &r) == nil && r.Msg == "stored objects judged again" && r.Policy != "" && strings.Contains(body, r.Policy) {
			last = r
		}
	}
	return last
}
