package warrant_test

import (
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/warrant"
)

// values are examples of each type and its near misses.
func values() map[string]struct{ good, bad []string } {
	return map[string]struct{ good, bad []string }{
		"dns1123": {
			[]string{"a", "0", "node-1", "a.b.c", "node-1.example.org", strings.Repeat("a", 253), "1.2.3.4"},
			[]string{"A", "a_b", "-a", "a-", "a.", ".a", "a..b", "a.-b", "a b", "a,b", "*", strings.Repeat("a", 254), "a\n", "ä", "::1"},
		},
		"ip": {
			[]string{"0.0.0.0", "10.0.0.10", "255.255.255.255", "::", "::1", "fe80::1", "2001:db8::", "1:2:3:4:5:6:7:8", "1::8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "ABCD::ef01", "1:2:3::6:7:8"},
			[]string{
				"256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.04", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4/24", "0x1.2.3.4", "16909060", "localhost",
				":", ":::", "1", "1:2", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4::5:6:7:8", "12345::", "g::", "fe80::1%eth0", "[::1]", "::ffff:1.2.3.4", ":1:2:3:4:5:6:7:8", "1.2.3.4\n",
			},
		},
		"hostport": {
			[]string{"a:1", "api.example.org:6443", "10.0.0.1:65535", "[::1]:443", "[fe80::1]:1"},
			[]string{"a", "a:", "a:0", "a:65536", "a:06443", "a:100000", ":80", "::1:80", "[::1]", "[a]:80", "a:80/", "u@a:80", "a:80 ", "A:80", "a:-1", "a:+1"},
		},
		"url": {
			[]string{"https://10.0.0.1:6443", "https://api.example.org", "http://a/b/c.tar?x=1&y=%20", "https://[::1]:6443/", "https://a:1/~x/@y,z=_+:-"},
			[]string{
				"", "https://", "ftp://a", "HTTPS://a", "https:/a", "//a", "a", "https://a b", "https://u@a", "https://u:p@a", "https://a#b", "https://a:0", "https://a:65536",
				"https://a?x=1", "https://a/$(id)", "https://a/`id`", "https://a/;id", "https://a/'", "https://a/\"", "https://a/\\", "https://a/<", "https://a/\n", "https://A", "https://::1/",
				"https://a/" + strings.Repeat("b", 2048),
			},
		},
		"b64": {
			[]string{"aGk=", "aA==", "aGkh", "AAAA", "+/+/", strings.Repeat("AAAA", 16384)},
			[]string{"a", "aGk", "aGk=aGk=", "aGl=", "aB==", "a===", "=", "====", "aGk-", "aGk_", "aGk=\n", "aG\nk=", " aGk=", "aGk= ", strings.Repeat("AAAA", 16385)},
		},
		"hex":  {[]string{"0", "0a", "deadbeef", strings.Repeat("f", 1024)}, []string{"0x0a", "0A", "g", "0a ", "0a:0b", "-1", strings.Repeat("f", 1025)}},
		"int":  {[]string{"0", "1", "-1", "42", "999999999999999", "-999999999999999"}, []string{"-0", "00", "01", "+1", "1.0", "1e3", "0x1", "1000000000000000", "-", "--1", "1 ", "9223372036854775808"}},
		"bool": {[]string{"true", "false"}, []string{"True", "TRUE", "yes", "1", "0", "t", "true ", "truefalse"}},
		"labels": {
			[]string{"a=b", "a=", "a=b,c=d", "example.org/a=b", "a.b_c-d=E.f_G-h", "karpenter.sh/nodepool=default,topology.kubernetes.io/zone=eu-1", "A=B", strings.Repeat("a", 63) + "=" + strings.Repeat("b", 63)},
			[]string{
				"a", "=b", "a=b,", ",a=b", "a=b,,c=d", "a=b c=d", "a=b, c=d", "a==b", "a=b=c", "/a=b", "a/=b", "a/b/c=d", "Example.org/a=b", "-a=b", "a-=b", "a=-b", "a=b-", "a=b:NoSchedule",
				"a=" + strings.Repeat("b", 64), strings.Repeat("a", 64) + "=", "a=b\n", "a=$(id)",
			},
		},
		"taints": {
			[]string{"a:NoSchedule", "a=b:NoExecute", "a=:PreferNoSchedule", "karpenter.sh/unregistered:NoExecute,a=b:NoSchedule"},
			[]string{"a", "a=b", "a:", "a:noSchedule", "a:NoSchedule,", ",a:NoSchedule", "a:NoSchedule,b", ":NoSchedule", "a=b:NoExecute:NoSchedule", "a:NoSchedule b:NoSchedule", "a:NoSchedule\n", "a=b=c:NoSchedule"},
		},
		"text": {[]string{" ", "a", "a b", "!~", `$(id) "quoted"`, strings.Repeat("a", 1024)}, []string{"a\nb", "a\n", "\t", "a\r", "\x00", "\x7f", "ä", "\x1b[0m", strings.Repeat("a", 1025)}},
	}
}

func TestTypes(t *testing.T) {
	all := values()
	for _, name := range warrant.Types() {
		m := warrant.Matcher{Kind: "type", Value: name}
		for _, v := range all[name].good {
			if !m.Accepts(v) {
				t.Errorf("%s refuses %.80q", name, v)
			}
		}
		for _, v := range all[name].bad {
			if m.Accepts(v) {
				t.Errorf("%s accepts %.80q", name, v)
			}
		}
		if len(all[name].good) == 0 || len(all[name].bad) == 0 {
			t.Errorf("type %s has no examples", name)
		}
	}
}

func TestWhatIsNoTypeAcceptsNothing(t *testing.T) {
	for _, m := range []warrant.Matcher{{}, {Kind: "type"}, {Kind: "type", Value: "string"}, {Kind: "glob", Value: "*"}, {Kind: "re", Value: "("}, {Kind: "re", Value: "a|b"}, {Kind: "sha256"}} {
		for _, v := range []string{"a", "b", "string", "*", "(", "true", "1"} {
			if m.Accepts(v) {
				t.Errorf("%+v accepts %q", m, v)
			}
		}
	}
}
