package fleet_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/internal/fleet"
	"github.com/hostwarrant/hostwarrant/testkit"
)

type tree = map[string]any

// part is what an object has there, nil where it is not made of fields.
func part(of tree, name string) tree {
	if p, ok := of[name].(tree); ok {
		return p
	}
	return nil
}

func host(name, class string) tree {
	return tree{
		"apiVersion": "karpenter.dklesev.github.io/v1beta1", "kind": "SSHHost",
		"metadata": tree{"namespace": "pool", "name": name, "uid": "u-1", "generation": 3, "labels": tree{"karpenter.dklesev.github.io/host-class": class}}, "spec": tree{"execMode": "Verified"},
	}
}

func state(name, reachable string, revoke, mark int) tree {
	status := "True"
	if reachable != "Answered" {
		status = "False"
	}
	return told(name, "revoke", revoke, mark, tree{"type": "Reachable", "status": status, "reason": reachable})
}

// answering is the state of a host that has no statement, with a condition Current.
func answering(reason, status string) tree {
	return told("a", "revoke", 0, 40, tree{"type": "Current", "status": status, "reason": reason})
}

// judged is the state of a host that knows the newest revoke, with the condition Reachable and a Current that is False.
func judged(reachable, status, current string) tree {
	return told("a", "revoke", 5, 40, tree{"type": "Current", "status": "False", "reason": current}, tree{"type": "Reachable", "status": status, "reason": reachable})
}

// knowing is the state of a host that has one statement.
func knowing(kind string, serial int) tree { return told("a", kind, serial, 40) }

func told(name, kind string, serial, mark int, conditions ...tree) tree {
	return tree{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostState",
		"metadata": tree{"namespace": "pool", "name": name, "ownerReferences": []tree{{"kind": "SSHHost", "name": name, "uid": "u-1"}}},
		"status": tree{
			"observedGeneration": 3,
			"lastContact":        "2026-11-30T11:00:00Z", "skewSeconds": 2, "statements": []tree{{"kind": kind, "serial": serial}},
			"marks": []tree{{"profile": "tls", "serial": mark}}, "conditions": conditions,
		},
	}
}

func revoke(serial int, place, verified string) tree {
	text := fmt.Sprintf("hostwarrant-statement: v1 revoke\nserial %d\nissued 5\n%srevoke SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0\nend\n", serial, place)
	return tree{
		"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostStatement", "metadata": tree{"name": fmt.Sprint("r", serial)},
		"spec": tree{"statement": text, "signatures": []string{"x"}}, "status": tree{"conditions": []tree{{"type": "Verified", "status": verified}}},
	}
}

func policy(t *testing.T, floor int, now time.Time, ends time.Duration) tree {
	t.Helper()
	document := testkit.PolicyDocument(testkit.NewSigner(t, "ed25519")) + fmt.Sprintf("floors: {tls: %d}\n", floor)
	document = strings.Replace(document, "2027-05-29T00:00:00Z", now.Add(ends).Format(time.RFC3339), 1)
	return tree{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "TrustPolicy", "metadata": tree{"name": "cluster"}, "spec": tree{"document": document, "signatures": []string{"x"}}}
}

func view(t *testing.T, objects ...tree) fleet.View {
	t.Helper()
	var all []json.RawMessage
	for _, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, raw)
	}
	return fleet.New(all, testkit.Now())
}

func TestWhatHostsAreBehind(t *testing.T) {
	const cluster = "cluster prod-1\n"
	now := testkit.Now()
	base := []tree{host("a", "bm"), state("a", "Answered", 5, 40), revoke(5, cluster, "True"), policy(t, 40, now, 90*24*time.Hour)}
	if v := view(t, base...); v.Behind() || len(v.Expiring) != 0 || len(v.Hosts) != 1 || v.Hosts[0].Profiles["tls"] != 40 || v.Hosts[0].Statements["revoke"] != 5 {
		t.Fatalf("current: %+v", v)
	}
	for what, test := range map[string]struct {
		objects []tree
		want    []string
	}{
		"a newer statement":                    {append([]tree{revoke(6, cluster, "True")}, base...), []string{"revoke 5, the newest is 6"}},
		"one for its class":                    {append([]tree{revoke(6, cluster+"target class bm\n", "True")}, base...), []string{"revoke 5, the newest is 6"}},
		"one for another class":                {append([]tree{revoke(6, cluster+"target class gpu\n", "True")}, base...), nil},
		"one that nobody signed":               {append([]tree{revoke(6, cluster, "False")}, base...), nil},
		"a floor above its mark":               {[]tree{base[0], base[1], base[2], policy(t, 41, now, 90*24*time.Hour)}, []string{"profile tls 40, the floor is 41"}},
		"a host that is away":                  {[]tree{base[0], state("a", "Unreachable", 5, 40), base[2]}, []string{"not reachable: Unreachable"}},
		"one that another host stands for":     {[]tree{base[0], judged("HostKeyMismatch", "False", "HostKeyMismatch"), base[2]}, []string{"not reachable: HostKeyMismatch"}},
		"one that answered before it went":     {[]tree{base[0], judged("Unreachable", "False", "StatementRejected"), base[2]}, []string{"not reachable: Unreachable"}},
		"one that is there and will not":       {[]tree{base[0], judged("Answered", "True", "StatementRejected"), base[2]}, []string{"it answered: StatementRejected"}},
		"a host without a state":               {[]tree{base[0], base[3]}, []string{"the relay wrote nothing of it"}},
		"a newer one that is gone":             {[]tree{base[0], base[1], revoke(4, cluster, "True")}, []string{"ahead: revoke 5, the newest here is 4"}},
		"all of a kind are gone":               {[]tree{base[0], base[1]}, []string{"ahead: revoke 5, the newest here is 0"}},
		"links that the anchor is past":        {[]tree{base[0], knowing("roots", 3), base[2]}, []string{"no revoke, the newest is 5"}},
		"signers that are gone":                {[]tree{base[0], knowing("signers", 3), base[2]}, []string{"no revoke, the newest is 5", "ahead: signers 3, the newest here is 0"}},
		"one that nobody vouches for any more": {[]tree{base[0], base[1], revoke(5, cluster, "False")}, []string{"ahead: revoke 5, the newest here is 0"}},
		"one for itself alone":                 {[]tree{base[0], base[1], revoke(5, cluster+"target host SHA256:99C/ioik3e7hla/Yzm0maHua74gbS6fv/bJjWaB0Wv0\n", "True")}, nil},
		"the other shim":                       {[]tree{base[0], answering("StatementsUnsupported", "False"), base[2]}, []string{"it answered: StatementsUnsupported", "no revoke, the newest is 5"}},
		"not told yet":                         {[]tree{base[0], answering("Behind", "False"), base[2]}, []string{"no revoke, the newest is 5"}},
		"nothing known yet":                    {[]tree{base[0], answering("Behind", "Unknown"), base[2]}, []string{"no revoke, the newest is 5"}},
		"a state without revokes":              {[]tree{base[0], state("a", "Answered", 0, 40), base[2]}, []string{"no revoke, the newest is 5"}},
	} {
		t.Run(what, func(t *testing.T) {
			v := view(t, test.objects...)
			if diff := cmp.Diff(test.want, v.Hosts[0].Behind); diff != "" || v.Behind() != (test.want != nil) {
				t.Errorf("%s; behind %v", diff, v.Behind())
			}
		})
	}
	if v := view(t, host("a", "bm"), state("a", "Answered", 5, 40), revoke(5, cluster, "True"), policy(t, 1, now, 29*24*time.Hour)); len(v.Expiring) != 1 || v.Expiring[0].What != "TrustPolicy cluster" || v.Behind() {
		t.Errorf("a policy that ends within 30 days: %+v", v)
	}
	if v := view(t, tree{"apiVersion": "x/v1", "kind": "SSHHost", "metadata": tree{"name": "x"}, "spec": "?"}); !v.Behind() || len(v.Unread) != 1 {
		t.Errorf("what cannot be read: %+v", v)
	}
}

// What a HostState says is of the SSHHost, and of the address, that it was written for, and of its time.
func TestAStateOfAnotherMachineOrTimeIsNotThisOnes(t *testing.T) {
	const since, none = "the relay wrote nothing of it since its SSHHost was made or changed", "no revoke, the newest is 5"
	last := func(ago time.Duration) func(host, state tree) {
		return func(_, state tree) {
			part(state, "status")["lastContact"] = testkit.Now().Add(-ago).Format(time.RFC3339)
		}
	}
	for name, test := range map[string]struct {
		change func(host, state tree)
		want   []string
	}{
		"as it is":                  {func(_, _ tree) {}, nil},
		"points to another machine": {func(host, _ tree) { part(host, "metadata")["generation"] = 4 }, []string{since, none}},
		"pointed there before":      {func(_, state tree) { part(state, "status")["observedGeneration"] = 4 }, []string{since, none}},
		"made anew under its name":  {func(host, _ tree) { part(host, "metadata")["uid"] = "u-2" }, []string{since, none}},
		"of no owner":               {func(_, state tree) { delete(part(state, "metadata"), "ownerReferences") }, []string{since, none}},
		"never met":                 {func(_, state tree) { delete(part(state, "status"), "lastContact") }, []string{"last contact: never"}},
		"met three looks ago":       {last(fleet.Silent), nil},
		"met before that":           {last(fleet.Silent + time.Second), []string{"last contact: 2026-11-30T08:39:59Z"}},
		"a clock ahead":             {last(-fleet.Silent), nil},
		"met in the future":         {last(-fleet.Silent - time.Second), []string{"last contact: 2026-11-30T15:20:01Z"}},
		"refused, and then silent": {func(host, state tree) {
			last(1e6*time.Second)(host, state)
			part(state, "status")["conditions"] = []tree{{"type": "Current", "status": "False", "reason": "StatementRejected"}}
		}, []string{"it answered: StatementRejected", "last contact: 2026-11-18T22:13:20Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := host("a", "bm"), state("a", "Answered", 5, 40)
			test.change(h, s)
			v := view(t, h, s, revoke(5, "cluster prod-1\n", "True"))
			if diff := cmp.Diff(test.want, v.Hosts[0].Behind); diff != "" || v.Behind() != (test.want != nil) {
				t.Errorf("%s; behind %v", diff, v.Behind())
			}
		})
	}
}
