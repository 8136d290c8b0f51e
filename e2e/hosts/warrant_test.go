//go:build linux

package hosts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/envelope"
	"github.com/hostwarrant/hostwarrant/internal/script"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// verdict is an exit code, with a part of the sentence on stderr where that tells causes apart. The zero one runs.
type verdict struct {
	code envelope.ExitCode
	says string
}

// judge sends an order and asserts the verdict, and that only a zero one ran.
func (w *world) judge(t *testing.T, o order, v verdict) {
	t.Helper()
	if v.code == 0 {
		w.runs(t, o)
		return
	}
	w.refuses(t, o.text(), v.code, v.says)
}

// TestAScriptRunsForItsPurposeOnly: phase and profile.
func TestAScriptRunsForItsPurposeOnly(t *testing.T) {
	w := newWorld(t)
	for _, phase := range []script.Phase{script.Install, script.Join, script.Leave, script.Uninstall} {
		t.Run("sent as what it is not: "+string(phase), func(t *testing.T) {
			o := w.order(t, w.warrant(phase, w.profile()), "", w.alice)
			for _, other := range []string{"install", "join", "leave", "uninstall"} {
				want := verdict{16, fmt.Sprintf("for phase %s, not %s", phase, other)}
				if other == string(phase) {
					want = verdict{}
				}
				w.judge(t, o.as(other), want)
			}
		})
	}
	t.Run("without a warrant", func(t *testing.T) {
		bare := order{phase: "join", script: "echo x >>" + ranFile + "\n"}
		w.reset(t, map[string]string{"allowed_signers": "kpssh,join@* namespaces=\"kpssh\" " + w.alice.Line + "\n"})
		bare.sign(t, w.alice)
		w.judge(t, bare, verdict{14, "no warrant"})
		w.reset(t, map[string]string{
			"allowed_signers": "kpssh,join@* namespaces=\"kpssh\" " + w.alice.Line + "\n", "shim.conf": "warrant=optional\n",
		})
		bare.mark = "x"
		w.judge(t, bare, verdict{})
	})
	t.Run("a profile's script renamed to another's", func(t *testing.T) {
		w.reset(t, nil)
		o := w.join(t, "")
		renamed := o
		renamed.script = strings.Replace(o.script, "profile tls-", "profile tls-9", 1)
		w.judge(t, renamed, verdict{2, "verify:"})
		w.judge(t, o, verdict{})
	})
	t.Run("a warrant that is edited", func(t *testing.T) {
		o := w.join(t, "")
		for old, changed := range map[string]string{"serial 42": "serial 43", "class bm": "class gpu", "phase join": "phase leave", "not-after 1": "not-after 2"} {
			edited := o
			edited.script = strings.Replace(o.script, old, changed, 1)
			w.judge(t, edited, verdict{2, "verify:"})
		}
		w.judge(t, o, verdict{})
	})
}

// TestASignerReachesAsFarAsItsScope: which phases and profiles a key may vouch for, and how many keys it takes.
func TestASignerReachesAsFarAsItsScope(t *testing.T) {
	w := newWorld(t)
	carol := testkit.NewSigner(t, "ecdsa256")
	signers := w.trust()["allowed_signers"] + "install@tls-*,join@tls-* namespaces=\"kpssh\" " + carol.Line + "\n"
	for name, c := range map[string]struct {
		phase   script.Phase
		profile string
		want    verdict
	}{
		"its phase and profile":       {script.Join, "tls-a", verdict{}},
		"its other phase":             {script.Install, "tls-b", verdict{}},
		"another phase":               {script.Leave, "tls-c", verdict{2, "verify:"}},
		"another profile":             {script.Join, "web-a", verdict{2, "verify:"}},
		"a profile that begins alike": {script.Join, "tls", verdict{2, "verify:"}},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, map[string]string{"allowed_signers": signers, "floors": "* 1\n"})
			v := w.warrant(c.phase, c.profile)
			w.judge(t, w.order(t, v, "", carol), c.want)
			w.judge(t, w.order(t, v, "", w.alice), verdict{})
		})
	}
	for name, c := range map[string]struct {
		by   []testkit.Signer
		want verdict
	}{
		"two of two":                    {[]testkit.Signer{w.alice, w.bob}, verdict{}},
		"two of two, and others":        {[]testkit.Signer{w.mallory, w.bob, w.alice}, verdict{}},
		"one of two":                    {[]testkit.Signer{w.alice}, verdict{2, "1 of the 2"}},
		"one key twice":                 {[]testkit.Signer{w.alice, w.alice}, verdict{2, "1 of the 2"}},
		"one and an unknown":            {[]testkit.Signer{w.alice, w.mallory}, verdict{2, "1 of the 2"}},
		"one and a revoked":             {[]testkit.Signer{w.alice, w.rita}, verdict{13, "revoked"}},
		"one and one outside its scope": {[]testkit.Signer{w.alice, carol}, verdict{2, "1 of the 2"}},
	} {
		t.Run("threshold: "+name, func(t *testing.T) {
			w.reset(t, map[string]string{
				"shim.conf":       w.conf("threshold-join=2\n"),
				"allowed_signers": w.trust()["allowed_signers"] + "join@web-* namespaces=\"kpssh\" " + carol.Line + "\n",
			})
			w.judge(t, w.join(t, "", c.by...), c.want)
		})
	}
}

// TestAScriptRunsWhereItIsFor: class, host and cluster.
func TestAScriptRunsWhereItIsFor(t *testing.T) {
	w := newWorld(t)
	target := func(lines ...string) []warrant.Target {
		var targets []warrant.Target
		for _, line := range lines {
			one, err := warrant.ParseTarget(line)
			must(t, err)
			targets = append(targets, one)
		}
		return targets
	}
	foreign := "host " + w.mallory.Fingerprint
	elsewhere := verdict{15, "another cluster, class or host"}
	for name, c := range map[string]struct {
		targets []warrant.Target
		want    verdict
	}{
		"any":                            {target("any"), verdict{}},
		"its class":                      {target("class bm"), verdict{}},
		"another class":                  {target("class gpu"), elsewhere},
		"a class that begins alike":      {target("class bm2"), elsewhere},
		"a class in capitals":            {target("class BM"), elsewhere},
		"the class any":                  {target("class any"), elsewhere},
		"one of two classes":             {target("class gpu", "class bm"), verdict{}},
		"its cluster":                    {target("cluster lab"), verdict{}},
		"another cluster":                {target("cluster prod-1"), elsewhere},
		"one of two clusters":            {target("cluster prod-1", "cluster lab"), verdict{}},
		"its class in another cluster":   {target("class bm", "cluster prod-1"), elsewhere},
		"another class of its cluster":   {target("class gpu", "cluster lab"), elsewhere},
		"another host":                   {target(foreign), elsewhere},
		"another host of its class":      {target("class bm", foreign), elsewhere},
		"one of two hosts":               {target(foreign, "host "+sshsig.Fingerprint(w.host.HostKeys[0])), verdict{}},
		"the host by its other host key": {target("host " + sshsig.Fingerprint(w.host.HostKeys[1])), verdict{}},
		"the host by its login key":      {target("host " + w.login.Fingerprint), elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			v := w.warrant(script.Join, w.profile())
			v.Targets = c.targets
			w.judge(t, w.order(t, v, "", w.alice), c.want)
		})
	}
	t.Run("a cluster, on a host that knows of none", func(t *testing.T) {
		w.reset(t, map[string]string{"cluster": ""})
		v := w.warrant(script.Join, w.profile())
		v.Targets = target("cluster lab")
		w.judge(t, w.order(t, v, "", w.alice), elsewhere)
		v.Targets = target("class bm")
		w.judge(t, w.order(t, v, "", w.alice), verdict{})
	})
}

// TestAHostGoesToItsOwnClusterOnly: genuine scripts with a foreign endpoint or CA.
func TestAHostGoesToItsOwnClusterOnly(t *testing.T) {
	w := newWorld(t)
	endpoint, ca := "KPSSH_CLUSTER_ENDPOINT="+clusterEndpoint+"\n", "KPSSH_CLUSTER_CA_B64="+b64(clusterCA)+"\n"
	foreignEndpoint, foreignCA := "KPSSH_CLUSTER_ENDPOINT=https://203.0.113.9:6443\n", "KPSSH_CLUSTER_CA_B64="+b64("foreign")+"\n"
	bad := verdict{3, "KPSSH_CLUSTER_"}
	enum := func(value string) []warrant.Param {
		return []warrant.Param{{Name: warrant.ClusterEndpoint, Matcher: warrant.Matcher{Kind: warrant.MatchEnum, Value: value}}}
	}
	anyCA := []warrant.Param{{Name: warrant.ClusterCA, Matcher: warrant.Matcher{Kind: warrant.MatchRE, Value: ".*"}}}
	typed := []warrant.Param{{Name: warrant.ClusterEndpoint, Matcher: warrant.Matcher{Kind: warrant.MatchType, Value: "url"}}}
	for name, c := range map[string]struct {
		params  string
		declare []warrant.Param
		cluster string // instead of the honest file; "none": there is none
		want    verdict
	}{
		"its own":                                  {ca + endpoint, nil, "", verdict{}},
		"none":                                     {"", nil, "", verdict{}},
		"empty ones":                               {"KPSSH_CLUSTER_CA_B64=\nKPSSH_CLUSTER_ENDPOINT=\n", nil, "", verdict{}},
		"a foreign endpoint":                       {ca + foreignEndpoint, nil, "", bad},
		"a foreign CA":                             {foreignCA + endpoint, nil, "", bad},
		"both foreign":                             {foreignCA + foreignEndpoint, nil, "", bad},
		"a path behind the endpoint":               {ca + strings.Replace(endpoint, "\n", "/\n", 1), nil, "", bad},
		"the endpoint in capitals":                 {ca + strings.Replace(endpoint, "https", "HTTPS", 1), nil, "", bad},
		"the endpoint without its port":            {ca + strings.Replace(endpoint, ":6443", "", 1), nil, "", bad},
		"a longer CA":                              {"KPSSH_CLUSTER_CA_B64=" + b64(clusterCA+"foreign") + "\n" + endpoint, nil, "", bad},
		"a CA with more behind its base64":         {"KPSSH_CLUSTER_CA_B64=" + b64(clusterCA) + "!" + b64("foreign") + "\n" + endpoint, anyCA, "", bad},
		"the CA by a warrant that takes any":       {ca + endpoint, anyCA, "", verdict{}},
		"the warrant's, which the host has not":    {foreignEndpoint, enum("https://203.0.113.9:6443"), "", bad},
		"the host's, which the warrant has not":    {endpoint, enum("https://203.0.113.9:6443"), "", bad},
		"what both have":                           {endpoint, enum(clusterEndpoint + " https://203.0.113.9:6443"), "", verdict{}},
		"the warrant's, on a host without a file":  {endpoint, enum(clusterEndpoint), "none", verdict{}},
		"another, on a host without a file":        {foreignEndpoint, enum(clusterEndpoint), "none", bad},
		"pinned by nobody":                         {endpoint, nil, "none", bad},
		"pinned by a type, which is nobody":        {endpoint, typed, "none", bad},
		"a CA pinned by nobody":                    {ca, nil, "none", bad},
		"one of two that the host has":             {endpoint, nil, "id lab\nendpoint https://a\nendpoint " + clusterEndpoint + "\nca-sha256 " + strings.Repeat("0", 64) + "\n", verdict{}},
		"a pattern in the host's file is a string": {endpoint, nil, "id lab\nendpoint https://*\nca-sha256 " + strings.Repeat("0", 64) + "\n", bad},
	} {
		t.Run(name, func(t *testing.T) {
			trust := map[string]string{}
			if c.cluster != "" {
				trust["cluster"] = strings.TrimPrefix(c.cluster, "none")
			}
			w.reset(t, trust)
			v := w.warrant(script.Join, w.profile())
			v.Targets = []warrant.Target{{Kind: warrant.TargetClass, Value: "bm"}}
			v.Params = c.declare
			w.judge(t, w.order(t, v, "", w.alice).with(c.params), c.want)
		})
	}
}

// TestParametersOutsideTheirDeclaration.
func TestParametersOutsideTheirDeclaration(t *testing.T) {
	w := newWorld(t)
	declare := func(words ...string) []warrant.Param {
		var params []warrant.Param
		for _, line := range words {
			one, err := warrant.ParseParam(line)
			must(t, err)
			params = append(params, one)
		}
		return params
	}
	params := declare("KPSSH_VAR_ip optional type ip", "KPSSH_VAR_mode optional enum fast slow", "KPSSH_VAR_re optional re [a-z]{1,8}[.]example[.]org",
		"KPSSH_VAR_text optional type text", "KPSSH_VAR_token required secret re [a-z0-9]{6}[.][a-z0-9]{16}")
	const needed = "KPSSH_VAR_token=" + token + "\n"
	many := &strings.Builder{}
	for i := range 10000 {
		fmt.Fprintf(many, "KPSSH_P%05d=x\n", i)
	}
	for name, c := range map[string]struct {
		params string
		want   verdict
	}{
		"as declared":                  {"KPSSH_VAR_ip=10.0.0.7\nKPSSH_VAR_mode=slow\nKPSSH_VAR_re=a.example.org\nKPSSH_VAR_text=x y\n" + needed, verdict{}},
		"the required one alone":       {needed, verdict{}},
		"empty optional ones":          {"KPSSH_VAR_ip=\nKPSSH_VAR_text=\n" + needed, verdict{}},
		"upstream's own":               {"KPSSH_NODE_NAME=pool-1\nKPSSH_NODE_LABELS=a=b,c.d/e=f\nKPSSH_TAINTS=a=b:NoSchedule\nKPSSH_HOST_ADDRESS=10.0.0.7\n" + needed, verdict{}},
		"text at its length":           {"KPSSH_VAR_text=" + strings.Repeat("x", 1024) + "\n" + needed, verdict{}},
		"text over its length":         {"KPSSH_VAR_text=" + strings.Repeat("x", 1025) + "\n" + needed, verdict{3, "KPSSH_VAR_text"}},
		"a value of 128 KiB":           {"KPSSH_VAR_text=" + strings.Repeat("x", 131072) + "\n" + needed, verdict{3, "KPSSH_VAR_text"}},
		"a value of 200 KiB":           {"KPSSH_VAR_text=" + strings.Repeat("x", 200000) + "\n" + needed, verdict{3, "KPSSH_VAR_text"}},
		"an LF in a value":             {"KPSSH_VAR_text=a\nb\n" + needed, verdict{3, "params: "}},
		"an LF and a declared name":    {"KPSSH_VAR_text=a\nKPSSH_VAR_mode=other\n" + needed, verdict{3, "KPSSH_VAR_mode"}},
		"a CR":                         {"KPSSH_VAR_text=a\r\n" + needed, verdict{3, "carriage return"}},
		"a NUL":                        {"KPSSH_VAR_text=a\x00b\n" + needed, verdict{3, "NUL"}},
		"a tab in text":                {"KPSSH_VAR_text=a\tb\n" + needed, verdict{3, "KPSSH_VAR_text"}},
		"no ASCII in text":             {"KPSSH_VAR_text=\xc3\xa9\n" + needed, verdict{3, "KPSSH_VAR_text"}},
		"not declared":                 {"KPSSH_VAR_other=x\n" + needed, verdict{3, "KPSSH_VAR_other"}},
		"not declared, and empty":      {"KPSSH_VAR_other=\n" + needed, verdict{3, "KPSSH_VAR_other"}},
		"a declared name in capitals":  {"KPSSH_VAR_TEXT=x\n" + needed, verdict{3, "KPSSH_VAR_TEXT"}},
		"a name of the shim's":         {"KPSSH_SHIM_PID=1\n" + needed, verdict{3, "KPSSH_SHIM_PID"}},
		"another word than the enum's": {"KPSSH_VAR_mode=fas\n" + needed, verdict{3, "KPSSH_VAR_mode"}},
		"two words of the enum":        {"KPSSH_VAR_mode=fast slow\n" + needed, verdict{3, "KPSSH_VAR_mode"}},
		"a dot that is no dot":         {"KPSSH_VAR_re=axexample.org\n" + needed, verdict{3, "KPSSH_VAR_re"}},
		"more behind the pattern":      {"KPSSH_VAR_re=a.example.org.evil\n" + needed, verdict{3, "KPSSH_VAR_re"}},
		"more before the pattern":      {"KPSSH_VAR_re=evil.a.example.org\n" + needed, verdict{3, "KPSSH_VAR_re"}},
		"no address":                   {"KPSSH_VAR_ip=10.0.0.256\n" + needed, verdict{3, "KPSSH_VAR_ip"}},
		"a node name with a path":      {"KPSSH_NODE_NAME=../x\n" + needed, verdict{3, "KPSSH_NODE_NAME"}},
		"a label with a command":       {"KPSSH_NODE_LABELS=a=$(id)\n" + needed, verdict{3, "KPSSH_NODE_LABELS"}},
		"a required one missing":       {"", verdict{3, "KPSSH_VAR_token is required"}},
		"a required one empty":         {"KPSSH_VAR_token=\n", verdict{3, "KPSSH_VAR_token is required"}},
		"one given twice":              {needed + needed, verdict{3, "twice"}},
		"10,000 of them":               {many.String(), verdict{3, "of them"}},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, nil)
			v := w.warrant(script.Join, w.profile())
			v.Params = params
			o := w.order(t, v, "", w.alice).with(c.params)
			w.judge(t, o, c.want)
			if got := w.send(t, o.text()); c.want.code != 0 && strings.Contains(got.stderr, token) {
				t.Error("the refusal shows a value")
			}
		})
	}
}

// TestAWarrantHoldsForItsTimeOnly.
func TestAWarrantHoldsForItsTimeOnly(t *testing.T) {
	w := newWorld(t)
	now := w.began
	for name, c := range map[string]struct {
		phase         script.Phase
		before, after time.Duration // from now
		never         bool
		want          verdict
	}{
		"in its time":                     {script.Join, -time.Hour, time.Hour, false, verdict{}},
		"from now on":                     {script.Join, -time.Second, days(89), false, verdict{}},
		"expired":                         {script.Join, -days(30), -time.Second, false, verdict{18, "it ended at"}},
		"an install, expired":             {script.Install, -days(30), -time.Second, false, verdict{18, "it ended at"}},
		"not yet valid":                   {script.Join, time.Hour, days(2), false, verdict{17, ""}},
		"a day early":                     {script.Join, days(1), days(2), false, verdict{17, ""}},
		"valid too long":                  {script.Join, -time.Hour, days(91), false, verdict{18, "more than 90 days"}},
		"an install, valid too long":      {script.Install, -time.Hour, days(3650), false, verdict{18, "more than 90 days"}},
		"a leave, valid for ever":         {script.Leave, -time.Hour, 0, true, verdict{}},
		"a leave, valid for ten years":    {script.Leave, -time.Hour, days(3650), false, verdict{}},
		"a leave that nobody vouches for": {script.Leave, -days(30), -time.Second, false, verdict{18, "it ended at"}},
		"a leave, not yet valid":          {script.Leave, time.Hour, 0, true, verdict{17, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			w.reset(t, nil)
			v := w.warrant(c.phase, w.profile())
			v.NotBefore, v.NotAfter, v.Never = now.Add(c.before).Unix(), now.Add(c.after).Unix(), c.never
			w.judge(t, w.order(t, v, "", w.alice), c.want)
		})
	}
}

// version is the four scripts of one version of a profile, as sign makes them: install and join vouch for how to leave.
type version struct{ install, join, leave, uninstall order }

func (w *world) version(t *testing.T, profile string, n int64, change func(*warrant.Warrant)) version {
	t.Helper()
	of := func(phase script.Phase) *warrant.Warrant {
		v := w.warrant(phase, profile)
		v.Serial = n
		change(v)
		return v
	}
	var all version
	all.leave = w.order(t, of(script.Leave), "", w.alice)
	all.uninstall = w.order(t, of(script.Uninstall), "", w.alice)
	vouching := func(phase script.Phase) order {
		v := of(phase)
		v.LeaveSHA256, v.UninstallSHA256 = all.leave.sha256(), all.uninstall.sha256()
		return w.order(t, v, "", w.alice)
	}
	all.install, all.join = vouching(script.Install), vouching(script.Join)
	return all
}

// neverLeaves makes the scripts by which a host leaves valid for ever.
func neverLeaves(v *warrant.Warrant) {
	v.Never = v.Phase == script.Leave || v.Phase == script.Uninstall
}

// TestAHostCanAlwaysLeave: by a script that has expired, by signers that have, or by its own copy; and a stolen key
// makes no new way to leave.
func TestAHostCanAlwaysLeave(t *testing.T) {
	w := newWorld(t)
	ended := w.conf("")
	ended = strings.Replace(ended, fmt.Sprint(w.began.Add(days(60)).Unix()), fmt.Sprint(w.began.Add(-time.Hour).Unix()), 1)
	old := func(v *warrant.Warrant) {
		if v.Phase == script.Leave || v.Phase == script.Uninstall {
			v.NotBefore, v.NotAfter = w.began.Add(-days(30)).Unix(), w.began.Add(-days(1)).Unix()
		}
	}
	t.Run("an expired leave that the join vouched for", func(t *testing.T) {
		w.reset(t, nil)
		all := w.version(t, w.profile(), serial, old)
		w.judge(t, all.leave, verdict{18, "it ended at"})
		w.judge(t, all.join, verdict{})
		w.judge(t, all.leave, verdict{})
		w.judge(t, all.uninstall, verdict{})
	})
	t.Run("another leave at the same serial", func(t *testing.T) {
		w.reset(t, nil)
		profile := w.profile()
		all := w.version(t, profile, serial, neverLeaves)
		w.judge(t, all.join, verdict{})
		other := w.order(t, w.warrant(script.Leave, profile), "echo other\n", w.alice)
		w.judge(t, other, verdict{21, "another leave script"})
		w.judge(t, all.leave, verdict{})
	})
	t.Run("after the signers have ended", func(t *testing.T) {
		w.reset(t, nil)
		profile := w.profile()
		all := w.version(t, profile, serial, neverLeaves)
		w.judge(t, all.join, verdict{})
		w.write(t, etcDir+"/shim.conf", ended)
		w.judge(t, all.join, verdict{18, "list of signers"})
		w.judge(t, w.version(t, profile, serial+1, neverLeaves).leave, verdict{18, "list of signers"})
		w.judge(t, w.version(t, w.profile(), serial, neverLeaves).leave, verdict{18, "list of signers"})
		w.judge(t, w.version(t, w.profile(), serial, neverLeaves).install, verdict{18, "list of signers"})
		w.judge(t, all.leave, verdict{})
		w.judge(t, all.uninstall, verdict{})
	})
	t.Run("by its own copy", func(t *testing.T) {
		w.reset(t, nil)
		all := w.version(t, w.profile(), serial, neverLeaves)
		empty := order{phase: "leave", mark: all.leave.mark}
		w.judge(t, empty, verdict{22, "leave script"})
		w.judge(t, empty.as("join"), verdict{4, "script is empty"})
		w.judge(t, all.join, verdict{})
		w.judge(t, all.leave, verdict{})
		w.judge(t, empty, verdict{})
		w.judge(t, empty.with("KPSSH_VAR_other=x\n"), verdict{3, "KPSSH_VAR_other"})
		w.write(t, etcDir+"/shim.conf", ended)
		w.judge(t, empty, verdict{})
		w.judge(t, empty.as("uninstall"), verdict{22, "uninstall script"})
		w.write(t, etcDir+"/revoked_keys", w.alice.Line+"\n")
		w.judge(t, empty, verdict{13, "revoked"})
		w.write(t, etcDir+"/revoked_keys", w.rita.Line+"\n")
		w.root(t, "for f in "+stateDir+"/installed/*.leave; do echo 'echo evil' >>$f; done")
		w.judge(t, empty, verdict{2, "verify:"})
	})
}

// TestOnlyForward: serials, marks and floors.
func TestOnlyForward(t *testing.T) {
	w := newWorld(t)
	same := func(*warrant.Warrant) {}
	t.Run("older, equal and newer", func(t *testing.T) {
		w.reset(t, nil)
		profile, neighbour := w.profile(), w.profile()
		at := func(n int64) order { return w.version(t, profile, n, same).join }
		w.judge(t, at(42), verdict{})
		w.judge(t, at(41), verdict{20, "serial 41"})
		w.judge(t, at(0), verdict{20, "serial 0"})
		w.judge(t, at(42), verdict{})
		other := w.order(t, w.warrant(script.Join, profile), "echo other\n", w.alice)
		w.judge(t, other, verdict{21, "another join script"})
		w.judge(t, w.version(t, profile, 42, same).install, verdict{})
		w.judge(t, at(1043), verdict{20, "serial 1043"})
		w.judge(t, at(999999999999999), verdict{20, "serial 999999999999999"})
		w.judge(t, at(1042), verdict{})
		w.judge(t, at(42), verdict{20, "serial 42"})
		w.judge(t, w.version(t, neighbour, 7, same).join, verdict{}) // a mark is its profile's own
	})
	t.Run("a first serial", func(t *testing.T) {
		w.reset(t, nil)
		w.judge(t, w.version(t, w.profile(), 1000001, same).join, verdict{20, "serial 1000001"})
		w.judge(t, w.version(t, w.profile(), 1000000, same).join, verdict{})
		profile := w.profile()
		w.reset(t, map[string]string{"floors": "tls-* 1\n" + profile + " 40\n"})
		w.judge(t, w.version(t, profile, 39, same).join, verdict{20, "serial 39"})
		w.judge(t, w.version(t, profile, 1041, same).join, verdict{20, "serial 1041"})
		w.judge(t, w.version(t, profile, 1040, same).join, verdict{})
	})
	t.Run("a step of its own", func(t *testing.T) {
		w.reset(t, map[string]string{"shim.conf": w.conf("max-serial-step=1\n")})
		profile := w.profile()
		w.judge(t, w.version(t, profile, 42, same).join, verdict{})
		w.judge(t, w.version(t, profile, 44, same).join, verdict{20, "serial 44"})
		w.judge(t, w.version(t, profile, 43, same).join, verdict{})
	})
	t.Run("a floor above the mark", func(t *testing.T) {
		w.reset(t, nil)
		profile := w.profile()
		w.judge(t, w.version(t, profile, 42, same).join, verdict{})
		w.write(t, etcDir+"/floors", profile+" 45\n")
		w.judge(t, w.version(t, profile, 42, same).join, verdict{20, "serial 42"})
		w.judge(t, w.version(t, profile, 44, same).join, verdict{20, "serial 44"})
		w.judge(t, w.version(t, profile, 45, same).join, verdict{})
		w.write(t, etcDir+"/floors", "tls-* 46\n")
		w.judge(t, w.version(t, profile, 45, same).join, verdict{20, "serial 45"})
	})
	t.Run("a script that fails", func(t *testing.T) {
		w.reset(t, nil)
		profile := w.profile()
		v := w.warrant(script.Join, profile)
		if got := w.send(t, w.order(t, v, "exit 1\n", w.alice).text()); got.code != 10 {
			t.Fatalf("answered %+v, want 10", got)
		}
		w.judge(t, w.version(t, profile, 41, same).join, verdict{20, "serial 41"})
	})
}

// TestCertificatesVouchByTheRules: a signer whose authority the host lists.
func TestCertificatesVouchByTheRules(t *testing.T) {
	w := newWorld(t)
	ca, rsa, carol := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "rsa3072"), testkit.NewSigner(t, "ed25519")
	signers := w.trust()["allowed_signers"]
	for _, authority := range []testkit.Signer{ca, rsa} {
		signers += "join@tls-* cert-authority,namespaces=\"kpssh\" " + authority.Line + "\n"
	}
	sha1 := rsa
	sha1.Signer = oldRSA{rsa.Signer}
	hour := func(c *ssh.Certificate) {
		c.ValidAfter, c.ValidBefore = uint64(w.began.Add(-time.Hour).Unix()), uint64(w.began.Add(time.Hour).Unix())
	}
	for name, c := range map[string]struct {
		ca         testkit.Signer
		principals []string // PROFILE stands for the script's
		change     func(*ssh.Certificate)
		want       verdict
	}{
		"for phase and profile":          {ca, []string{"join@PROFILE"}, hour, verdict{}},
		"by an RSA authority with SHA-2": {rsa, []string{"join@PROFILE"}, hour, verdict{}},
		"among others":                   {ca, []string{"leave@PROFILE", "join@PROFILE"}, hour, verdict{}},
		"by an RSA authority with SHA-1": {sha1, []string{"join@PROFILE"}, hour, verdict{2, "SHA-2"}},
		"by an unknown authority":        {w.mallory, []string{"join@PROFILE"}, hour, verdict{2, "verify:"}},
		"for a pattern":                  {ca, []string{"join@tls-*"}, hour, verdict{2, "verify:"}},
		"for everything":                 {ca, []string{"*"}, hour, verdict{2, "verify:"}},
		"for another phase":              {ca, []string{"leave@PROFILE"}, hour, verdict{2, "verify:"}},
		"for another profile":            {ca, []string{"join@tls-other"}, hour, verdict{2, "verify:"}},
		"for a list in one principal":    {ca, []string{"join@PROFILE,kpssh"}, hour, verdict{2, "verify:"}},
		"for nobody":                     {ca, nil, hour, verdict{2, "verify:"}},
		"with a critical option": {ca, []string{"join@PROFILE"}, func(c *ssh.Certificate) {
			hour(c)
			c.CriticalOptions = map[string]string{"force-command": "/bin/true"}
		}, verdict{2, "critical options"}},
		"with an option nobody knows": {ca, []string{"join@PROFILE"}, func(c *ssh.Certificate) {
			hour(c)
			c.CriticalOptions = map[string]string{"x@example.org": ""}
		}, verdict{2, "critical options"}},
		"that has ended": {ca, []string{"join@PROFILE"}, func(c *ssh.Certificate) {
			c.ValidAfter, c.ValidBefore = 0, uint64(w.began.Add(-time.Minute).Unix())
		}, verdict{2, "verify:"}},
		"that never ends": {ca, []string{"join@PROFILE"}, func(c *ssh.Certificate) {
			c.ValidAfter, c.ValidBefore = 0, ssh.CertTimeInfinity
		}, verdict{2, "without an end"}},
		"of a host": {ca, []string{"join@PROFILE"}, func(c *ssh.Certificate) {
			hour(c)
			c.CertType = ssh.HostCert
		}, verdict{2, "verify:"}},
		"whose key id writes lines": {ca, []string{"join@PROFILE"}, func(c *ssh.Certificate) {
			hour(c)
			c.KeyId = "x\nCritical Options: (none)\n"
			c.CriticalOptions = map[string]string{"force-command": "/bin/true"}
		}, verdict{2, "says things twice"}},
	} {
		t.Run(name, func(t *testing.T) {
			profile := w.profile()
			w.reset(t, map[string]string{"allowed_signers": signers})
			var principals []string
			for _, p := range c.principals {
				principals = append(principals, strings.ReplaceAll(p, "PROFILE", profile))
			}
			o := w.order(t, w.warrant(script.Join, profile), "", carol)
			plain := o
			o.sig = testkit.WithCertificate(t, o.sig, testkit.Certify(t, c.ca, carol.PublicKey(), principals, c.change))
			w.judge(t, plain, verdict{2, "verify:"}) // without its certificate the key is nobody's
			w.judge(t, o, c.want)
		})
	}
	t.Run("one authority twice is one", func(t *testing.T) {
		w.reset(t, map[string]string{"allowed_signers": signers, "shim.conf": w.conf("threshold-join=2\n")})
		dave, profile := testkit.NewSigner(t, "ed25519"), w.profile()
		o := w.order(t, w.warrant(script.Join, profile), "")
		blocks := map[string]string{}
		for name, by := range map[string]struct{ ca, key testkit.Signer }{"carol": {ca, carol}, "dave": {ca, dave}, "rsa": {rsa, dave}} {
			certificate := testkit.Certify(t, by.ca, by.key.PublicKey(), []string{"join@" + profile}, hour)
			blocks[name] = testkit.WithCertificate(t, signatures(t, "kpssh", o.script, by.key), certificate)
		}
		o.sig = blocks["carol"] + blocks["dave"]
		w.judge(t, o, verdict{2, "1 of the 2"})
		o.sig = blocks["carol"] + blocks["rsa"]
		w.judge(t, o, verdict{})
	})
}

// oldRSA signs with SHA-1, as an authority of long ago.
type oldRSA struct{ ssh.Signer }
