//go:build linux

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// TestAVersionDoesNotVanishWithAnObjectUnderDeletion: whoever holds a finalizer has an object ended
// without being judged, and the version that was written into it before the ledger saw it.
func TestAVersionDoesNotVanishWithAnObjectUnderDeletion(t *testing.T) {
	i := install(t)
	const name = "p-vanish"
	held := object{"finalizers": []string{"example.com/hold"}}
	i.succeeds(t, withMeta(t, serial(t, i, name, 1), held), "create", "-f", "-")
	i.remove(t, "sshjoinprofile", name)
	i.marked(t, name, "1")
	i.succeeds(t, nil, "delete", "sshjoinprofile", name, "--wait=false")
	i.refused(t, withMeta(t, serial(t, i, name, 2), held), []string{"apply", "--server-side", "--force-conflicts", "-f", "-"},
		"SSHJoinProfile/"+name+": metadata.deletionTimestamp: LedgerPending: ", "create it anew")
	i.succeeds(t, nil, "label", "sshjoinprofile", name, "a=b")
	i.succeeds(t, nil, "patch", "sshjoinprofile", name, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	i.succeeds(t, serial(t, i, name, 2), "create", "-f", "-")
	i.marked(t, name, "2")
}

// TestFieldManagersTakeNothingAway: server-side apply removes what its manager no longer says, which
// no patch of anybody's shows.
func TestFieldManagersTakeNothingAway(t *testing.T) {
	i := install(t)
	const name = "p-managers"
	signed := profile(t, name, scripts(), signatures(t, i.signer, scripts()))
	apply := func(manager string, force bool) []string {
		args := []string{"apply", "--server-side", "--field-manager=" + manager, "-f", "-"}
		if force {
			args = append(args, "--force-conflicts")
		}
		return args
	}
	i.succeeds(t, signed, apply("first", false)...)
	i.remove(t, "sshjoinprofile", name)
	i.refused(t, profile(t, name, scripts(), nil), apply("first", false), "SSHJoinProfile/"+name+": install: Unsigned: ")
	i.succeeds(t, signed, apply("second", false)...)
	t.Run("what another owns as well stays", func(t *testing.T) {
		i.succeeds(t, profile(t, name, scripts(), nil), apply("first", false)...)
		i.refused(t, profile(t, name, scripts(), nil), apply("second", false), "SSHJoinProfile/"+name+": install: Unsigned: ")
	})
	t.Run("one phase of another manager", func(t *testing.T) {
		i.refused(t, profile(t, name, join(strings.ToUpper), nil), apply("third", true), "SSHJoinProfile/"+name+": join: BytesChanged: ")
	})
	t.Run("the label of a host's class", func(t *testing.T) {
		bm := withMeta(t, host(t, "h-managers", nil), object{"labels": object{classLabel: "bm"}})
		i.succeeds(t, bm, apply("first", false)...)
		i.remove(t, "-n", "pool", "sshhost", "h-managers")
		i.usualPolicy(t)
		i.newPolicy(t, replace(t, "pool: {classes: [default, bm]", "pool: {classes: [bm]"), i.signer)
		i.refused(t, host(t, "h-managers", nil), apply("first", false), "SSHHost/h-managers: ", "HostClassRefused: ")
	})
}

// TestPatchesThatMoveNothingNew: each text that a JSON patch moves or copies was signed, for elsewhere.
func TestPatchesThatMoveNothingNew(t *testing.T) {
	i := install(t)
	const name = "p-moves"
	i.succeeds(t, profile(t, name, scripts(), signatures(t, i.signer, scripts())), "create", "-f", "-")
	i.remove(t, "sshjoinprofile", name)
	for what, c := range map[string]struct{ patch, says string }{
		"a script":                   {`[{"op":"copy","from":"/spec/scripts/leave","path":"/spec/scripts/join"}]`, "join: BytesChanged: "},
		"a signature":                {`[{"op":"copy","from":"/spec/signatures/leave","path":"/spec/signatures/join"}]`, "join: BytesChanged: "},
		"a signature out of the way": {`[{"op":"move","from":"/spec/signatures/join","path":"/spec/signatures/uninstall"}]`, "spec.signatures.uninstall: Malformed: "},
		"all signatures":             {`[{"op":"test","path":"/spec/version","value":"1"},{"op":"remove","path":"/spec/signatures"}]`, "install: Unsigned: "},
	} {
		t.Run(what, func(t *testing.T) {
			i.refused(t, nil, []string{"patch", "sshjoinprofile", name, "--type=json", "-p", c.patch}, "SSHJoinProfile/"+name+": "+c.says)
		})
	}
	t.Run("a script with its signature, under the phase that it is for", func(t *testing.T) {
		const both = `[{"op":"copy","from":"/spec/scripts/leave","path":"/spec/scripts/uninstall"},{"op":"copy","from":"/spec/signatures/leave","path":"/spec/signatures/uninstall"}]`
		i.succeeds(t, nil, "patch", "sshjoinprofile", name, "--type=json", "--dry-run=server", "-p", both) // without a warrant it says no phase
	})
	t.Run("a warranted script with its signature, under another phase", func(t *testing.T) {
		const limited = "p-moves-limited"
		i.succeeds(t, warranted(t, i, limited, func(*warrant.Warrant) {}), "create", "-f", "-")
		i.remove(t, "sshjoinprofile", limited)
		const both = `[{"op":"copy","from":"/spec/scripts/leave","path":"/spec/scripts/join"},{"op":"copy","from":"/spec/signatures/leave","path":"/spec/signatures/join"}]`
		i.refused(t, nil, []string{"patch", "sshjoinprofile", limited, "--type=json", "-p", both}, "SSHJoinProfile/"+limited+": join: WarrantMismatch: ")
	})
}

// TestAStatusWriteChangesNothingThatIsGuarded: sub-resources are not judged, because they carry nothing.
func TestAStatusWriteChangesNothingThatIsGuarded(t *testing.T) {
	i := install(t)
	const name = "h-status"
	i.succeeds(t, host(t, name, nil), "create", "-f", "-")
	i.remove(t, "-n", "pool", "sshhost", name)
	patch := `{"metadata":{"labels":{"` + classLabel + `":"gpu"}},"spec":{"execMode":"Raw","shimCommand":"/bin/sh","trustedSigners":[]},"status":{"installedProfile":"none@1"}}`
	i.succeeds(t, nil, "patch", "-n", "pool", "sshhost", name, "--subresource=status", "--type=merge", "-p", patch)
	got := i.succeeds(t, nil, "get", "-n", "pool", "sshhost", name, "-o", "jsonpath={.metadata.labels} {.spec.execMode} {.spec.shimCommand} {.spec.trustedSigners} {.status.installedProfile}").Stdout
	if want := ` Verified  ["` + i.signer.Line + `"] none@1`; got != want {
		t.Errorf("%q; want %q", got, want)
	}
	i.refused(t, nil, []string{"patch", "-n", "pool", "sshhost", name, "--type=merge", "-p", patch}, "SSHHost/"+name+": ", "ModeDowngrade: ")
	t.Run("nor does the relay's, which keeps no annotations", func(t *testing.T) {
		i.succeeds(t, withMeta(t, hostRun(t, "r-status", nil), object{"annotations": object{"a": "b"}}), "create", "-f", "-")
		i.remove(t, "-n", "pool", "hostrun", "r-status")
		i.succeeds(t, nil, "patch", "--as="+account("hostwarrant-relay"), "--as-group=system:masters", "-n", "pool", "hostrun", "r-status", "--subresource=status", "--type=merge", "-p", `{"metadata":{"annotations":null},"status":{"attempts":1}}`)
		if got := i.succeeds(t, nil, "get", "-n", "pool", "hostrun", "r-status", "-o", "jsonpath={.metadata.annotations.a} {.status.attempts}").Stdout; got != "b 1" {
			t.Errorf("%q; want the annotation and the status", got)
		}
	})
}

// TestTheCollectorDeletesNoProfileInUse: an owner that is not there has the garbage collector delete
// the object, and naming one is an update that nobody judges.
func TestTheCollectorDeletesNoProfileInUse(t *testing.T) {
	i := install(t)
	const name, used = "p-orphan", "p-orphan-used"
	dead := object{"ownerReferences": []object{{"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "5a7b0c1e-0000-4000-8000-000000000000"}}}
	for _, p := range []string{name, used} {
		i.succeeds(t, profile(t, p, scripts(), signatures(t, i.signer, scripts())), "create", "-f", "-")
	}
	i.succeeds(t, host(t, "h-orphan", nil), "create", "-f", "-")
	i.remove(t, "sshjoinprofile", used)
	i.remove(t, "-n", "pool", "sshhost", "h-orphan")
	i.succeeds(t, nil, "patch", "-n", "pool", "sshhost", "h-orphan", "--subresource=status", "--type=merge", "-p", `{"status":{"installedProfile":"`+used+`@1"}}`)
	eventually(t, "the host's profile to be known", func() bool {
		return strings.Contains(i.kubectl(t, nil, "delete", "sshjoinprofile", used, "--dry-run=server").Stderr, "InUse: SSHHost pool/h-orphan needs it")
	})
	for _, p := range []string{used, name} {
		i.succeeds(t, nil, "patch", "sshjoinprofile", p, "--type=merge", "-p", string(encode(t, object{"metadata": dead})))
	}
	eventually(t, "the collector to take the other one", func() bool {
		return strings.Contains(i.kubectl(t, nil, "get", "sshjoinprofile", name).Stderr, "NotFound")
	})
	time.Sleep(2 * time.Second) // what must not happen cannot be waited for
	i.succeeds(t, nil, "get", "sshjoinprofile", used)
}
