package fragment_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// maker makes JSON by chance.
type maker struct{ *rand.Rand }

func pick[T any](m maker, from ...T) T { return from[m.IntN(len(from))] }

// some joins up to n texts.
func (m maker) some(n int, what func() string) string {
	parts := make([]string, m.IntN(n+1))
	for i := range parts {
		parts[i] = what()
	}
	return strings.Join(parts, pick(m, ",", ",", ",", " , ", ",\n"))
}

// document is JSON of any shape, with the oddities that the canonical hash treats apart.
func (m maker) document(depth int) string {
	if depth == 0 {
		return pick(m, m.scalar(), "[]", "{}")
	}
	switch m.IntN(6) {
	case 0:
		return "[" + m.some(4, func() string { return m.document(depth - 1) }) + "]"
	case 1:
		return m.scalar()
	default:
		return "{" + m.some(5, func() string { return m.name() + pick(m, ":", ": ") + m.document(depth-1) }) + "}"
	}
}

func (m maker) name() string {
	return pick(m, `"a"`, `"A"`, `"\u0061"`, `"b"`, `""`, `"status"`, `"st\u0061tus"`, `"conditions"`, `"status.conditions"`, `".status.conditions"`, `"spec"`, m.quoted())
}

func (m maker) scalar() string {
	return pick(m, "null", "true", "false", m.number(), m.quoted())
}

func (m maker) number() string {
	return pick(m, "0", "-0", "1", "1.0", "1e0", "10E-1", "-7", "2147483648", "9007199254740993", "9223372036854775808", "1e308", "1e400", "1e-400", "5e-324",
		"0.1", "1e21", "1e20", "1e-7", fmt.Sprint(m.Int64()), fmt.Sprint(m.NormFloat64()), fmt.Sprintf("%e", m.NormFloat64()))
}

// quoted is a string in one of its spellings, now and then one that is no UTF-8.
func (m maker) quoted() string {
	parts := []string{"a", "null", "/", `\/`, `\"`, `\\`, `\n`, `\u0000`, `\b`, "\x7f", "<", `\u003c`, "&", "⋯", "\u2028", `\u2028`, "é", `\ud83d\ude00`, "😀", `\ud800`, `\ude00`, `\ud800\u0061`, "\xff", "\xe2\x82", "|", ":"}
	var out strings.Builder
	for range m.IntN(4) {
		out.WriteString(pick(m, parts...))
	}
	return `"` + out.String() + `"`
}

// harm changes a few bytes of a text.
func (m maker) harm(text string) string {
	if text == "" {
		return text
	}
	at := m.IntN(len(text))
	switch m.IntN(4) {
	case 0:
		return text[:at] + text[at+1:]
	case 1:
		return text[:at] + string("{}[]:,\"\\ 01e-.nul\x00\xff"[m.IntN(19)]) + text[at:]
	case 2:
		return text[:at]
	default:
		end := min(len(text), at+m.IntN(20))
		return text[:end] + text[at:]
	}
}

// word is a string that every reader takes alike.
func (m maker) word() string {
	return pick(m, `""`, `"a"`, `"/bin/⋯"`, `"\u003c"`, `"<&>"`, `"\n\u0001"`, `"\u2028"`, `"null"`, `"all"`, `"x\"y\\"`)
}

func (m maker) words() string { return pick(m, "null", "["+m.some(3, m.word)+"]") }

func (m maker) truth() string { return pick(m, "true", "false") }

// fields writes an object; each field is there or not, now and then as null.
func (m maker) fields(pairs ...any) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		name := as[string](pairs[i])
		value := as[func() string](pairs[i+1])
		switch m.IntN(8) {
		case 0, 1:
		case 2:
			parts = append(parts, fmt.Sprintf("%q:null", name))
		default:
			parts = append(parts, fmt.Sprintf("%q:%s", name, value()))
		}
	}
	m.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return "{" + strings.Join(parts, ",") + "}"
}

func (m maker) list(of func() string) func() string {
	return func() string { return pick(m, "null", "["+m.some(3, of)+"]") }
}

func (m maker) table(of func() string) func() string {
	return func() string {
		parts := []string{}
		for _, name := range []string{"a", "b", "<", "app"}[:m.IntN(5)] {
			parts = append(parts, fmt.Sprintf("%q:%s", name, of()))
		}
		return pick(m, "null", "{"+strings.Join(parts, ",")+"}")
	}
}

func (m maker) whole() string { return pick(m, "0", "1", "7", "2147483647") }

// free is JSON without names that stand twice and strings that readers take differently.
func (m maker) free(depth int) string {
	if depth == 0 || m.IntN(3) == 0 {
		return pick(m, "null", "true", "false", "0", "-0", "1.50", "1e3", "1e21", "0.0000001", "9007199254740993", m.word())
	}
	if m.IntN(2) == 0 {
		return "[" + m.some(3, func() string { return m.free(depth - 1) }) + "]"
	}
	return m.table(func() string { return m.free(depth - 1) })()
}

func (m maker) anything() string { return m.free(2) }

func (m maker) profile() string {
	requirement := func() string { return m.fields("key", m.word, "operator", m.word, "values", m.words) }
	selector := func() string {
		return m.fields("matchLabels", m.table(m.word), "matchExpressions", m.list(requirement))
	}
	port := func() string { return m.fields("name", m.word, "protocol", m.word, "port", m.whole) }
	neighbor := func() string {
		return m.fields("identifier", m.word, "type", m.word, "dns", m.word, "dnsNames", m.words, "ports", m.list(port),
			"podSelector", selector, "namespaceSelector", selector, "ipAddress", m.word)
	}
	arg := func() string { return m.fields("index", m.whole, "value", m.whole, "valueTwo", m.whole, "op", m.word) }
	call := func() string {
		return m.fields("names", m.words, "action", m.word, "errnoRet", m.whole, "args", m.list(arg))
	}
	seccomp := func() string {
		return m.fields("name", m.word, "path", m.word, "spec", func() string {
			return m.fields("disabled", m.truth, "baseProfileName", m.word, "defaultAction", m.word, "architectures", m.words,
				"listenerPath", m.word, "listenerMetadata", m.word, "syscalls", m.list(call), "flags", m.words)
		})
	}
	stack := func() string {
		return m.fields("callID", m.word, "callStack", func() string { return m.fields("root", func() string { return m.node(2) }) })
	}
	return m.fields("architectures", m.words, "capabilities", m.words,
		"execs", m.list(func() string {
			return m.fields("path", m.word, "args", m.words, "envs", m.words, "parentPath", m.word)
		}),
		"opens", m.list(func() string { return m.fields("path", m.word, "flags", m.words) }),
		"syscalls", m.words, "seccompProfile", seccomp,
		"endpoints", m.list(func() string {
			return m.fields("endpoint", m.word, "methods", m.words, "internal", m.truth, "direction", m.word, "headers", m.anything)
		}),
		"imageID", m.word, "imageTag", m.word,
		"rulePolicies", m.table(func() string { return m.fields("processAllowed", m.words, "containerAllowed", m.truth) }),
		"identifiedCallStacks", m.list(stack), "matchLabels", m.table(m.word), "matchExpressions", m.list(requirement),
		"ingress", m.list(neighbor), "egress", m.list(neighbor))
}

func (m maker) node(depth int) string {
	children := func() string { return "null" }
	if depth > 0 {
		children = m.list(func() string { return m.node(depth - 1) })
	}
	return m.fields("children", children, "frame", func() string { return m.fields("fileID", m.word, "lineno", m.word, "frameType", m.whole) })
}

func (m maker) rules() string {
	pattern := func() string {
		return m.fields("exact", m.word, "prefix", m.word, "suffix", m.word, "contains", m.word)
	}
	need := func() string { return pick(m, "null", `"all"`, "["+pattern()+"]", "["+pattern()+","+pattern()+"]") }
	needs := func() string {
		return m.fields("opens", need, "execs", need, "capabilities", need, "syscalls", need, "endpoints", need,
			"egressDomains", need, "egressAddresses", need, "ingressDomains", need, "ingressAddresses", need)
	}
	expressions := func() string {
		return m.fields("message", m.word, "uniqueId", m.word, "ruleExpression", m.list(func() string {
			return m.fields("eventType", m.word, "expression", m.word)
		}))
	}
	return m.fields("rules", m.list(func() string {
		return m.fields("enabled", m.truth, "id", m.word, "name", m.word, "description", m.word, "expressions", expressions,
			"profileDependency", m.whole, "profileDataRequired", needs, "severity", m.whole, "supportPolicy", m.truth, "tags", m.words,
			"state", m.table(m.anything), "agentVersionRequirement", m.word, "isTriggerAlert", m.truth, "mitreTactic", m.word, "mitreTechnique", m.word)
	}))
}

// carrier is an object without signature.
func (m maker) carrier() string {
	version := pick(m, "0", "7", "9223372036854775807")
	labels := m.table(m.word)()
	if m.IntN(2) == 0 {
		labels = fmt.Sprintf(`{"signature.kubescape.io/version":%q,"signature.kubescape.io/bundle":"b"}`, version)
	}
	api, kind, spec := "spdx.softwarecomposition.kubescape.io/v1beta1", "ContainerProfile", m.profile
	switch m.IntN(8) {
	case 0, 1, 2:
		api, kind, spec = "kubescape.io/v1", "Rules", m.rules
	case 3:
		api, kind, spec = "kubescape.io/v1", "RuntimeRuleAlertBinding", m.table(m.anything)
	case 4:
		kind, spec = "SeccompProfile", m.table(m.anything)
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"n","namespace":"any","labels":%s},"spec":%s}`, api, kind, labels, spec())
}
