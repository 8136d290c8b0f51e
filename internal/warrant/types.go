package warrant

import "strings"

// The parts of types, as POSIX EREs that RE2 reads alike.
const (
	labelPart        = `[a-z0-9]([a-z0-9-]*[a-z0-9])?`
	subdomainPattern = labelPart + `([.]` + labelPart + `)*`

	octetPart = `(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])`
	ipv4Part  = octetPart + `([.]` + octetPart + `){3}`
	h16Part   = `[0-9A-Fa-f]{1,4}`
	ipv6Part  = `(` + h16Part + `:){7}` + h16Part +
		`|(` + h16Part + `:){1,7}:` +
		`|(` + h16Part + `:){1,6}:` + h16Part +
		`|(` + h16Part + `:){1,5}(:` + h16Part + `){1,2}` +
		`|(` + h16Part + `:){1,4}(:` + h16Part + `){1,3}` +
		`|(` + h16Part + `:){1,3}(:` + h16Part + `){1,4}` +
		`|(` + h16Part + `:){1,2}(:` + h16Part + `){1,5}` +
		`|` + h16Part + `:(:` + h16Part + `){1,6}` +
		`|:(:` + h16Part + `){1,7}|::`
	portPart = `([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])`
	hostPart = `(` + subdomainPattern + `|\[(` + ipv6Part + `)\])` // an IPv4 address looks like a subdomain

	labelValuePart = `([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)`
	labelKeyPart   = `(` + subdomainPattern + `/)?` + labelValuePart
	labelItem      = labelKeyPart + `=` + labelValuePart + `?`
	taintItem      = labelKeyPart + `(=` + labelValuePart + `?)?:(NoSchedule|PreferNoSchedule|NoExecute)`

	ipPattern      = ipv4Part + `|` + ipv6Part
	addressPattern = subdomainPattern + `|` + ipv6Part
	b64Pattern     = `([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?`
)

// The most bytes of a value (docs/spec/warrant.md, Types).
const (
	maxText = 1024
	maxName = 253
	maxURL  = 2048
	maxList = 16384
	maxRaw  = 65536
)

// rule is what a value must be: an ERE for all of it, and its most bytes.
type rule struct {
	ere string
	max int
}

// Types returns the types that a parameter may have.
func Types() []string {
	return []string{"dns1123", "ip", "hostport", "url", "b64", "hex", "int", "bool", "labels", "taints", "text"}
}

// typeRule returns the rule of a type, and nothing that matches for what is none.
func typeRule(name string) rule {
	switch name {
	case "dns1123":
		return rule{subdomainPattern, maxName}
	case "ip":
		return rule{ipPattern, maxText}
	case "hostport":
		return rule{hostPart + `:` + portPart, maxText}
	case "url":
		return rule{`https?://` + hostPart + `(:` + portPart + `)?(/[A-Za-z0-9._~%@:=&+,/?-]*)?`, maxURL}
	case "b64":
		return rule{b64Pattern, maxRaw}
	case "hex":
		return rule{`[0-9a-f]+`, maxText}
	case "int":
		return rule{`0|-?[1-9][0-9]{0,14}`, maxText}
	case "bool":
		return rule{`true|false`, maxText}
	case "labels":
		return rule{labelItem + `(,` + labelItem + `)*`, maxList}
	case "taints":
		return rule{taintItem + `(,` + taintItem + `)*`, maxList}
	case "text":
		return rule{`[ -~]+`, maxText}
	default:
		return rule{`.`, 0}
	}
}

// accepts reports whether value obeys the rule, by whoever matches EREs.
func (r rule) accepts(value string, fits matching) bool {
	return len(value) <= r.max && !strings.ContainsAny(value, "\n\r\x00") && fits(r.ere, value)
}
