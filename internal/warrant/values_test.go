package warrant_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

const endpoint = "https://10.0.0.1:6443"

func digest(b string) string {
	sum := sha256.Sum256([]byte(b))
	return hex.EncodeToString(sum[:])
}

func param(t *testing.T, words string) warrant.Param {
	t.Helper()
	p, err := warrant.ParseParam(words)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// upstreams is what upstream's controller sends for a join.
func upstreams() map[string]string {
	return map[string]string{
		"KPSSH_CLUSTER_ENDPOINT": endpoint, "KPSSH_CLUSTER_CA_B64": base64.StdEncoding.EncodeToString([]byte("a CA")),
		"KPSSH_BOOTSTRAP_TOKEN": "abcdef.0123456789abcdef", "KPSSH_NODE_NAME": "node-1", "KPSSH_PROVIDER_ID": "kpssh://pool/host-a",
		"KPSSH_NODE_LABELS": "a=b", "KPSSH_TAINTS": "karpenter.sh/unregistered:NoExecute", "KPSSH_HOST_ADDRESS": "10.0.0.21", "KPSSH_NODE_ADDRESS": "fe80::1",
	}
}

func pinned() warrant.Pin {
	return warrant.Pin{Endpoints: []string{"https://other:6443", endpoint}, CASHA256: []string{digest("another CA"), digest("a CA")}}
}

func TestCheckParams(t *testing.T) {
	ca := upstreams()["KPSSH_CLUSTER_CA_B64"]
	tests := map[string]struct {
		phase  script.Phase
		params []string
		values map[string]string // on top of upstream's
		pin    warrant.Pin
		want   decision.Reason
		says   string
	}{
		"what upstream sends, pinned by the host": {"join", nil, nil, pinned(), decision.Verified, ""},
		"all nine empty":                            {"join", nil, empty(), warrant.Pin{}, decision.Verified, ""},
		"all nine empty, and pinned":                {"join", nil, empty(), pinned(), decision.Verified, ""},
		"nothing pins":                              {"join", nil, nil, warrant.Pin{}, decision.ClusterUnpinned, "KPSSH_CLUSTER_ENDPOINT"},
		"nothing pins in install":                   {"install", nil, nil, warrant.Pin{}, decision.ClusterUnpinned, "KPSSH_CLUSTER_ENDPOINT"},
		"nothing pins in leave":                     {"leave", nil, nil, warrant.Pin{}, decision.Verified, ""},
		"nothing pins in uninstall":                 {"uninstall", nil, nil, warrant.Pin{}, decision.Verified, ""},
		"nothing pins in no phase":                  {"", nil, nil, warrant.Pin{}, decision.ClusterUnpinned, ""},
		"only the endpoint is pinned":               {"join", nil, nil, warrant.Pin{Endpoints: []string{endpoint}}, decision.ClusterUnpinned, "KPSSH_CLUSTER_CA_B64"},
		"only the CA is pinned":                     {"join", nil, nil, warrant.Pin{CASHA256: []string{digest("a CA")}}, decision.ClusterUnpinned, "KPSSH_CLUSTER_ENDPOINT"},
		"a foreign endpoint":                        {"join", nil, map[string]string{"KPSSH_CLUSTER_ENDPOINT": "https://10.0.0.2:6443"}, pinned(), decision.ParamInvalid, "KPSSH_CLUSTER_ENDPOINT"},
		"an endpoint in a second spelling":          {"join", nil, map[string]string{"KPSSH_CLUSTER_ENDPOINT": endpoint + "/"}, pinned(), decision.ParamInvalid, "KPSSH_CLUSTER_ENDPOINT"},
		"a foreign CA":                              {"join", nil, map[string]string{"KPSSH_CLUSTER_CA_B64": "Zm9yZWlnbg=="}, pinned(), decision.ParamInvalid, "KPSSH_CLUSTER_CA_B64"},
		"the digest of the base64 is no pin":        {"join", nil, nil, warrant.Pin{Endpoints: []string{endpoint}, CASHA256: []string{digest(ca)}}, decision.ParamInvalid, "KPSSH_CLUSTER_CA_B64"},
		"the warrant pins both":                     {"join", []string{"KPSSH_CLUSTER_ENDPOINT required enum https://a " + endpoint, "KPSSH_CLUSTER_CA_B64 required sha256 " + digest(ca)}, nil, warrant.Pin{}, decision.Verified, ""},
		"the warrant pins another endpoint":         {"join", []string{"KPSSH_CLUSTER_ENDPOINT required enum https://a"}, nil, pinned(), decision.ParamInvalid, "KPSSH_CLUSTER_ENDPOINT"},
		"the warrant pins another CA":               {"join", []string{"KPSSH_CLUSTER_CA_B64 required sha256 " + digest("x")}, nil, pinned(), decision.ParamInvalid, "KPSSH_CLUSTER_CA_B64"},
		"the warrant pins, the host pins otherwise": {"join", []string{"KPSSH_CLUSTER_ENDPOINT required enum " + endpoint}, nil, warrant.Pin{Endpoints: []string{"https://a"}, CASHA256: []string{digest("a CA")}}, decision.ParamInvalid, "/etc/kpssh/cluster"},
		"a pattern is no pin":                       {"join", []string{"KPSSH_CLUSTER_ENDPOINT required re https://10.0.0.1:6443"}, nil, warrant.Pin{CASHA256: []string{digest("a CA")}}, decision.ClusterUnpinned, "KPSSH_CLUSTER_ENDPOINT"},
		"a type is no pin":                          {"join", []string{"KPSSH_CLUSTER_CA_B64 required type b64"}, nil, warrant.Pin{Endpoints: []string{endpoint}}, decision.ClusterUnpinned, "KPSSH_CLUSTER_CA_B64"},
		"a CA that is no base64":                    {"join", []string{"KPSSH_CLUSTER_CA_B64 required type text"}, map[string]string{"KPSSH_CLUSTER_CA_B64": "?"}, pinned(), decision.ParamInvalid, "base64"},

		"an undeclared variable":           {"join", nil, map[string]string{"KPSSH_VAR_x": "1"}, pinned(), decision.ParamUndeclared, "KPSSH_VAR_x"},
		"an undeclared variable, empty":    {"join", nil, map[string]string{"KPSSH_VAR_x": ""}, pinned(), decision.ParamUndeclared, "KPSSH_VAR_x"},
		"an undeclared variable, in leave": {"leave", nil, map[string]string{"KPSSH_VAR_x": "1"}, pinned(), decision.ParamUndeclared, "KPSSH_VAR_x"},
		"PATH":                             {"join", nil, map[string]string{"PATH": "/tmp"}, pinned(), decision.ParamUndeclared, "PATH"},
		"a tenth built-in name":            {"join", nil, map[string]string{"KPSSH_NODE_TAINTS": ""}, pinned(), decision.ParamUndeclared, "KPSSH_NODE_TAINTS"},

		"a declared variable":                     {"join", []string{"KPSSH_VAR_x required type int"}, map[string]string{"KPSSH_VAR_x": "1"}, pinned(), decision.Verified, ""},
		"a declared variable, wrong":              {"join", []string{"KPSSH_VAR_x required type int"}, map[string]string{"KPSSH_VAR_x": "one"}, pinned(), decision.ParamInvalid, "KPSSH_VAR_x (3 bytes)"},
		"a required variable, absent":             {"join", []string{"KPSSH_VAR_x required type int"}, nil, pinned(), decision.ParamInvalid, "required"},
		"a required variable, empty":              {"join", []string{"KPSSH_VAR_x required re a*"}, map[string]string{"KPSSH_VAR_x": ""}, pinned(), decision.ParamInvalid, "required"},
		"an optional variable, absent":            {"join", []string{"KPSSH_VAR_x optional type int"}, nil, pinned(), decision.Verified, ""},
		"an optional variable, empty":             {"join", []string{"KPSSH_VAR_x optional type int"}, map[string]string{"KPSSH_VAR_x": ""}, pinned(), decision.Verified, ""},
		"an optional variable, wrong":             {"join", []string{"KPSSH_VAR_x optional type int"}, map[string]string{"KPSSH_VAR_x": "x"}, pinned(), decision.ParamInvalid, "KPSSH_VAR_x"},
		"a built-in name required, empty":         {"join", []string{"KPSSH_NODE_NAME required type dns1123"}, map[string]string{"KPSSH_NODE_NAME": ""}, pinned(), decision.ParamInvalid, "KPSSH_NODE_NAME"},
		"a built-in name declared more strictly":  {"join", []string{"KPSSH_NODE_NAME required re pool-[0-9]+"}, nil, pinned(), decision.ParamInvalid, "KPSSH_NODE_NAME"},
		"a declaration stands for the built-in":   {"join", []string{"KPSSH_NODE_NAME required type text"}, map[string]string{"KPSSH_NODE_NAME": "Node 1"}, pinned(), decision.Verified, ""},
		"an enum takes one of its values":         {"join", []string{"KPSSH_VAR_x required enum a b"}, map[string]string{"KPSSH_VAR_x": "b"}, pinned(), decision.Verified, ""},
		"an enum takes no two":                    {"join", []string{"KPSSH_VAR_x required enum a b"}, map[string]string{"KPSSH_VAR_x": "a b"}, pinned(), decision.ParamInvalid, "enum a b"},
		"an enum takes no part":                   {"join", []string{"KPSSH_VAR_x required enum ab"}, map[string]string{"KPSSH_VAR_x": "a"}, pinned(), decision.ParamInvalid, "enum"},
		"a digest of the raw value":               {"join", []string{"KPSSH_VAR_x required sha256 " + digest("aGk=")}, map[string]string{"KPSSH_VAR_x": "aGk="}, pinned(), decision.Verified, ""},
		"a digest of other bytes":                 {"join", []string{"KPSSH_VAR_x required sha256 " + digest("hi")}, map[string]string{"KPSSH_VAR_x": "aGk="}, pinned(), decision.ParamInvalid, "sha256"},
		"a digest of a value with a line feed":    {"join", []string{"KPSSH_VAR_x required sha256 " + digest("a\nb")}, map[string]string{"KPSSH_VAR_x": "a\nb"}, pinned(), decision.ParamInvalid, "sha256"},
		"a digest of too long a value":            {"join", []string{"KPSSH_VAR_x required sha256 " + digest(strings.Repeat("a", 65537))}, map[string]string{"KPSSH_VAR_x": strings.Repeat("a", 65537)}, pinned(), decision.ParamInvalid, "sha256"},
		"a pattern matches the whole value":       {"join", []string{"KPSSH_VAR_x required re a+"}, map[string]string{"KPSSH_VAR_x": "aab"}, pinned(), decision.ParamInvalid, "re a+"},
		"a pattern matches no part of a line":     {"join", []string{"KPSSH_VAR_x required re a+"}, map[string]string{"KPSSH_VAR_x": "b\naa"}, pinned(), decision.ParamInvalid, "re a+"},
		"a pattern matches no line of two":        {"join", []string{"KPSSH_VAR_x required re a+"}, map[string]string{"KPSSH_VAR_x": "aa\n"}, pinned(), decision.ParamInvalid, "re a+"},
		"a dot matches no letter beyond ASCII":    {"join", []string{"KPSSH_VAR_x required re .+"}, map[string]string{"KPSSH_VAR_x": "ä"}, pinned(), decision.ParamInvalid, "re .+"},
		"a pattern takes 1024 bytes":              {"join", []string{"KPSSH_VAR_x required re a+"}, map[string]string{"KPSSH_VAR_x": strings.Repeat("a", 1024)}, pinned(), decision.Verified, ""},
		"a pattern takes no 1025 bytes":           {"join", []string{"KPSSH_VAR_x required re a+"}, map[string]string{"KPSSH_VAR_x": strings.Repeat("a", 1025)}, pinned(), decision.ParamInvalid, "1025 bytes"},
		"a node name that is none":                {"join", nil, map[string]string{"KPSSH_NODE_NAME": "a;b"}, pinned(), decision.ParamInvalid, "KPSSH_NODE_NAME"},
		"an endpoint that is no URL":              {"join", nil, map[string]string{"KPSSH_CLUSTER_ENDPOINT": "$(id)"}, pinned(), decision.ParamInvalid, "KPSSH_CLUSTER_ENDPOINT"},
		"a CA in two pieces of base64":            {"join", nil, map[string]string{"KPSSH_CLUSTER_CA_B64": "YSBDQQ==YSBDQQ=="}, pinned(), decision.ParamInvalid, "KPSSH_CLUSTER_CA_B64"},
		"a token with a line feed":                {"join", nil, map[string]string{"KPSSH_BOOTSTRAP_TOKEN": "a\nb"}, pinned(), decision.ParamInvalid, "KPSSH_BOOTSTRAP_TOKEN"},
		"a provider ID with a carriage return":    {"join", nil, map[string]string{"KPSSH_PROVIDER_ID": "a\r"}, pinned(), decision.ParamInvalid, "KPSSH_PROVIDER_ID"},
		"labels that are none":                    {"join", nil, map[string]string{"KPSSH_NODE_LABELS": "a"}, pinned(), decision.ParamInvalid, "KPSSH_NODE_LABELS"},
		"taints that are none":                    {"join", nil, map[string]string{"KPSSH_TAINTS": "a=b"}, pinned(), decision.ParamInvalid, "KPSSH_TAINTS"},
		"an address by name":                      {"join", nil, map[string]string{"KPSSH_HOST_ADDRESS": "host.example.org"}, pinned(), decision.Verified, ""},
		"an address with a port":                  {"join", nil, map[string]string{"KPSSH_HOST_ADDRESS": "10.0.0.1:22"}, pinned(), decision.ParamInvalid, "KPSSH_HOST_ADDRESS"},
		"a node address that is none":             {"join", nil, map[string]string{"KPSSH_NODE_ADDRESS": "10.0.0.1 "}, pinned(), decision.ParamInvalid, "KPSSH_NODE_ADDRESS"},
		"the first wrong name by order of names":  {"join", nil, map[string]string{"KPSSH_TAINTS": "?", "KPSSH_NODE_NAME": "?", "KPSSH_VAR_x": ""}, pinned(), decision.ParamInvalid, "KPSSH_NODE_NAME"},
		"a name of many bytes is shown cut short": {"join", nil, map[string]string{"KPSSH_" + strings.Repeat("A", 500): ""}, pinned(), decision.ParamUndeclared, "AAA"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := &warrant.Warrant{Phase: tt.phase}
			for _, words := range tt.params {
				w.Params = append(w.Params, param(t, words))
			}
			values := upstreams()
			maps.Copy(values, tt.values)
			err := w.CheckParams(values, tt.pin)
			if tt.want == decision.Verified {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			if e := decision.From(err); e.Reason != tt.want || !strings.Contains(e.What, tt.says) || len(e.What) > 300 {
				t.Errorf("got %s: %s\nwant %s and %q", e.Reason, e.What, tt.want, tt.says)
			}
		})
	}
}

func empty() map[string]string {
	values := upstreams()
	for name := range values {
		values[name] = ""
	}
	return values
}

// TestNoErrorShowsAValue: values may be secrets.
func TestNoErrorShowsAValue(t *testing.T) {
	const secret = "hunter2\x01"
	for name := range upstreams() {
		w := &warrant.Warrant{Phase: "join"}
		err := w.CheckParams(map[string]string{name: secret}, pinned())
		if err == nil {
			t.Errorf("%s may be %q", name, secret)
			continue
		}
		if e := decision.From(err); strings.Contains(e.Error()+e.Hint, "hunter2") {
			t.Errorf("the error shows the value: %v", err)
		}
	}
}

func TestDeclaredTellsSecrets(t *testing.T) {
	w := &warrant.Warrant{Phase: "join", Params: []warrant.Param{param(t, "KPSSH_SECRET_A required secret type text"), param(t, "KPSSH_VAR_a optional type text")}}
	for name, want := range map[string]bool{"KPSSH_SECRET_A": true, "KPSSH_VAR_a": false, "KPSSH_BOOTSTRAP_TOKEN": true, "KPSSH_NODE_NAME": false} {
		if p, ok := w.Declared(name); !ok || p.Secret != want || p.Name != name {
			t.Errorf("Declared(%s) = %+v, %v", name, p, ok)
		}
	}
	if p, ok := w.Declared("KPSSH_VAR_b"); ok {
		t.Errorf("Declared(KPSSH_VAR_b) = %+v", p)
	}
}
