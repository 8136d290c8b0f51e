package warrant

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/script"
)

// Pin is what a host's /etc/kpssh/cluster, or whoever judges in its place, knows of
// the cluster: endpoints compared byte for byte, and SHA-256 of CA bundles as
// decoded, in lower-case hex.
type Pin struct {
	Endpoints []string
	CASHA256  []string
}

// The two parameters that decide to which cluster a host goes.
const (
	ClusterEndpoint = "KPSSH_CLUSTER_ENDPOINT"
	ClusterCA       = "KPSSH_CLUSTER_CA_B64"
)

// Declared returns how a parameter is declared: by the warrant, else as one of the
// nine that upstream always sends, which need no line.
func (w *Warrant) Declared(name string) (Param, bool) {
	for _, p := range w.Params {
		if p.Name == name {
			return p, true
		}
	}
	return builtIn(name)
}

func builtIn(name string) (Param, bool) {
	p := Param{Name: name, Matcher: Matcher{Kind: MatchType}}
	switch name {
	case ClusterEndpoint:
		p.Matcher.Value = "url"
	case ClusterCA:
		p.Matcher.Value = "b64"
	case "KPSSH_BOOTSTRAP_TOKEN":
		p.Secret, p.Matcher.Value = true, "text"
	case "KPSSH_NODE_NAME":
		p.Matcher.Value = "dns1123"
	case "KPSSH_PROVIDER_ID":
		p.Matcher.Value = "text"
	case "KPSSH_NODE_LABELS":
		p.Matcher.Value = "labels"
	case "KPSSH_TAINTS":
		p.Matcher.Value = "taints"
	case "KPSSH_HOST_ADDRESS", "KPSSH_NODE_ADDRESS":
		p.Matcher = Matcher{Kind: matchAddress}
	default:
		return Param{}, false
	}
	return p, true
}

// matchAddress is the kind of the two addresses: a subdomain or an IP address. No
// line of a warrant can spell it.
const matchAddress = "address"

// CheckParams judges the parameters of one run: each declared, its value as
// declared, the required ones there, and cluster endpoint and CA pinned. The error
// carries ParamUndeclared, ParamInvalid or ClusterUnpinned, and never a value.
func (w *Warrant) CheckParams(values map[string]string, pin Pin) error {
	if err := w.checkValues(values, fits); err != nil {
		return err
	}
	if err := w.checkRequired(values, func(Param) bool { return true }); err != nil {
		return err
	}
	// leave and uninstall go to no cluster; anything else may
	if w.Phase == script.Leave || w.Phase == script.Uninstall {
		return nil
	}
	return w.checkCluster(values, pin)
}

// VarPrefix is what stands before the key of a node class's or a run's var.
const VarPrefix = "KPSSH_VAR_"

// CheckVars judges the vars of a node class or of a run, by key, before there is a
// run: each declared, its value as declared, and the required ones there that vars
// give. The error carries ParamUndeclared or ParamInvalid, and never a value.
func (w *Warrant) CheckVars(vars map[string]string) error { return w.checkVars(vars, fits) }

// VarsCheck is CheckVars for the vars of many: it compiles each pattern once. It is not
// safe for concurrent use, and not to be kept: a pattern may take a hundred KiB.
func (w *Warrant) VarsCheck() func(vars map[string]string) error {
	known := map[string]*regexp.Regexp{}
	once := func(ere, value string) bool {
		if known[ere] == nil {
			known[ere] = compiled(ere)
		}
		return known[ere].MatchString(value)
	}
	return func(vars map[string]string) error { return w.checkVars(vars, once) }
}

func (w *Warrant) checkVars(vars map[string]string, fits matching) error {
	values := make(map[string]string, len(vars))
	for key, value := range vars {
		values[VarPrefix+key] = value
	}
	if err := w.checkValues(values, fits); err != nil {
		return err
	}
	return w.checkRequired(values, func(p Param) bool { return !p.Secret && strings.HasPrefix(p.Name, VarPrefix) })
}

func (w *Warrant) checkValues(values map[string]string, fits matching) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p, ok := w.Declared(name)
		// check: ParamUndeclared: a value that steers the script without its author's knowledge
		if !ok {
			return decision.Errorf(decision.ParamUndeclared, "the warrant does not declare %.80q", name).
				Try("leave it out, or declare it with a param line and sign again")
		}
		// check: ParamInvalid: a value outside of what the script's author wrote it for
		if values[name] != "" && !p.Matcher.accepts(values[name], fits) {
			return decision.Errorf(decision.ParamInvalid, "the value of %s (%d bytes) is not what the warrant declares: %s",
				name, len(values[name]), decision.OneLine(p.Matcher.String(), 120))
		}
	}
	return nil
}

// checkRequired wants a value for each required parameter that is asked about.
func (w *Warrant) checkRequired(values map[string]string, asked func(Param) bool) error {
	for _, p := range w.Params {
		// check: ParamInvalid: a script that runs without what it needs
		if p.Required && asked(p) && values[p.Name] == "" {
			return decision.Errorf(decision.ParamInvalid, "%s is required and has no value", p.Name)
		}
	}
	return nil
}

// Accepts reports whether a value that is not empty is what m declares.
func (m Matcher) Accepts(value string) bool { return m.accepts(value, fits) }

func (m Matcher) accepts(value string, fits matching) bool {
	switch m.Kind {
	case MatchType:
		return typeRule(m.Value).accepts(value, fits)
	case MatchEnum:
		return slices.Contains(strings.Split(m.Value, " "), value)
	case MatchSHA256:
		sum := sha256.Sum256([]byte(value))
		return len(value) <= maxRaw && !strings.ContainsAny(value, "\n\r\x00") && hex.EncodeToString(sum[:]) == m.Value
	case MatchRE:
		return rule{`[ -~]+`, maxText}.accepts(value, fits) && checkPattern(m.Value) == nil && fits(m.Value, value)
	case matchAddress:
		return rule{addressPattern, maxName}.accepts(value, fits)
	default:
		return false
	}
}

// checkCluster: a genuine script with a foreign endpoint and CA hands the host to a
// foreign API server.
func (w *Warrant) checkCluster(values map[string]string, pin Pin) error {
	if err := w.checkPinned(ClusterEndpoint, values[ClusterEndpoint], values[ClusterEndpoint], pin.Endpoints); err != nil {
		return err
	}
	ca := values[ClusterCA]
	decoded, err := base64.StdEncoding.Strict().DecodeString(ca)
	// check: ParamInvalid: a CA that only a lenient decoder reads
	if err != nil {
		return decision.Errorf(decision.ParamInvalid, "the value of %s is not base64", ClusterCA)
	}
	sum := sha256.Sum256(decoded)
	return w.checkPinned(ClusterCA, ca, hex.EncodeToString(sum[:]), pin.CASHA256)
}

// checkPinned compares fact, which stands for the value, with what the host knows.
// Where the warrant pins the value, CheckParams has compared that already.
func (w *Warrant) checkPinned(name, value, fact string, known []string) error {
	if value == "" {
		return nil
	}
	p, _ := w.Declared(name)
	byWarrant := p.Matcher.Kind == MatchEnum || p.Matcher.Kind == MatchSHA256
	// check: ClusterUnpinned: an endpoint or CA that whoever sends the parameters may choose
	if len(known) == 0 && !byWarrant {
		return decision.Errorf(decision.ClusterUnpinned, "%s is pinned neither by the warrant nor by the host", name).
			Try("declare it with enum or sha256 in the warrant, or pin it in /etc/kpssh/cluster on the host")
	}
	// check: ParamInvalid: a genuine script that hands the host to a foreign cluster
	if len(known) > 0 && !slices.Contains(known, fact) {
		return decision.Errorf(decision.ParamInvalid, "%s is none of those that /etc/kpssh/cluster pins", name)
	}
	return nil
}
