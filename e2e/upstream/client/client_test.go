package client

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The bytes of docs/spec/upstream.md, Envelope, written out.
func TestTheTextOnTheWire(t *testing.T) {
	cases := map[string]struct {
		e    Envelope
		want string
	}{
		"probe": {Envelope{Phase: "probe"}, "kpssh-envelope: 1\nphase: probe\n"},
		"a phase": {
			Envelope{Phase: "leave", Params: map[string]string{"KPSSH_b": "", "KPSSH_A": "1=2"}, Signature: "s\n", Script: "#!/bin/sh\n"},
			"kpssh-envelope: 1\nphase: leave\nparams-b64: S1BTU0hfQT0xPTIKS1BTU0hfYj0K\nsig-b64: cwo=\nscript-b64: IyEvYmluL3NoCg==\n",
		},
		"no parameters": {Envelope{Phase: "join", Signature: "s", Script: "x"}, "kpssh-envelope: 1\nphase: join\nsig-b64: cw==\nscript-b64: eA==\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, c.e.Text()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParametersOfAJoin(t *testing.T) {
	j := Join{
		Endpoint: "https://10.0.0.5:6443", CA: []byte("PEM\n"), Token: "abcdef.0123456789abcdef", NodeName: "pool-1", ProviderID: "kpssh://pool/a",
		Labels: "a=b", Taints: []string{"x=y:NoSchedule"}, Address: "10.0.0.21", Vars: map[string]string{"k8sMinor": "1.36"},
		Secrets: map[string]string{"activation-id": "1"},
	}
	got, err := j.Params()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"KPSSH_CLUSTER_ENDPOINT": "https://10.0.0.5:6443", "KPSSH_CLUSTER_CA_B64": "UEVNCg==", "KPSSH_BOOTSTRAP_TOKEN": "abcdef.0123456789abcdef",
		"KPSSH_NODE_NAME": "pool-1", "KPSSH_PROVIDER_ID": "kpssh://pool/a", "KPSSH_NODE_LABELS": "a=b",
		"KPSSH_TAINTS":       "karpenter.sh/unregistered:NoExecute,x=y:NoSchedule",
		"KPSSH_HOST_ADDRESS": "10.0.0.21", "KPSSH_NODE_ADDRESS": "10.0.0.21",
		"KPSSH_VAR_k8sMinor": "1.36", "KPSSH_SECRET_ACTIVATION_ID": "1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	j.Secrets["activation.id"] = "2"
	if _, err := j.Params(); err == nil || !strings.Contains(err.Error(), "KPSSH_SECRET_ACTIVATION_ID") {
		t.Errorf("two keys that become one name: %v", err)
	}
	if got := Leave("10.0.0.21", "10.1.0.21"); len(got) != 9 || got["KPSSH_NODE_ADDRESS"] != "10.1.0.21" || got["KPSSH_NODE_NAME"] != "" {
		t.Errorf("leave: %v", got)
	}
}

func TestWhatIsReadInAProbe(t *testing.T) {
	for text, want := range map[string]Facts{
		"8\n16384256\nx86_64\ninactive\n": {8, 16384256, "amd64", false},
		"8\n16384256\naarch64\nactive\n":  {8, 16384256, "arm64", true},
		"8 16384256 riscv64":              {8, 16384256, "riscv64", false},
		"8\n16384256\n":                   {},
		"":                                {},
	} {
		if diff := cmp.Diff(want, readFacts(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

// A client that shared our codec would share its faults.
func TestItSharesNoCode(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const module, own = "github.com/hostwarrant/hostwarrant/", "github.com/hostwarrant/hostwarrant/e2e/upstream/client"
	found := false
	for _, path := range strings.Fields(string(out)) {
		found = found || path == own
		if strings.HasPrefix(path, module) && path != own {
			t.Errorf("it imports %s", path)
		}
	}
	if !found {
		t.Errorf("go list does not name %s", own)
	}
}
