package fragment_test

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// This file is a second implementation of docs/spec/fragments.md, written from that page
// and sharing no code with the first. It knows only good and bad, not why.

var errRefused = errors.New("refused")

func hexHash(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

// oracleHash is the canonical hash.
func oracleHash(v any, path string) (string, error) {
	switch v := v.(type) {
	case nil:
		return hexHash("null"), nil
	case bool:
		return hexHash(strconv.FormatBool(v)), nil
	case string:
		return hexHash(v), nil
	case numeral:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return "", errRefused
		}
		var bits [8]byte
		binary.BigEndian.PutUint64(bits[:], math.Float64bits(f))
		return hexHash(string(bits[:])), nil
	case []any:
		var parts []string
		for _, element := range v {
			h, err := oracleHash(element, path)
			if err != nil {
				return "", err
			}
			parts = append(parts, h)
		}
		sort.Strings(parts)
		return hexHash(strings.Join(parts, "|")), nil
	case record:
		return oracleHashObject(v, path)
	}
	return "", errRefused
}

func oracleHashObject(object record, path string) (string, error) {
	last := map[string]string{}
	for _, e := range object {
		h, err := oracleHash(e.value, path+"."+e.name)
		if err != nil {
			return "", err
		}
		if path+"."+e.name != ".status.conditions" {
			last[e.name] = h
		}
	}
	var parts []string
	for name, h := range last {
		parts = append(parts, hexHash(name)+":"+h)
	}
	sort.Strings(parts)
	return hexHash(strings.Join(parts, "|")), nil
}

// A shape writes a value of one type; it fails where the value has another type.
type shape func(v any) (string, error)

func text(v any) (string, error) {
	if v == nil {
		return `""`, nil
	}
	s, ok := v.(string)
	if !ok {
		return "", errRefused
	}
	return quote(s), nil
}

func truth(v any) (string, error) {
	if v == nil {
		return "false", nil
	}
	b, ok := v.(bool)
	if !ok {
		return "", errRefused
	}
	return strconv.FormatBool(b), nil
}

func integer(low, high string) shape {
	return func(v any) (string, error) {
		if v == nil {
			return "0", nil
		}
		n, ok := v.(numeral)
		value, whole := new(big.Int).SetString(string(n), 10)
		from, _ := new(big.Int).SetString(low, 10)
		to, _ := new(big.Int).SetString(high, 10)
		if !ok || !whole || value.Cmp(from) < 0 || value.Cmp(to) > 0 || low == "0" && strings.HasPrefix(string(n), "-") {
			return "", errRefused
		}
		return value.String(), nil
	}
}

func number() shape   { return integer("-9223372036854775808", "9223372036854775807") }
func unsigned() shape { return integer("0", "18446744073709551615") }

func list(of shape) shape {
	return func(v any) (string, error) {
		if v == nil {
			return "null", nil
		}
		elements, ok := v.([]any)
		if !ok {
			return "", errRefused
		}
		var parts []string
		for _, element := range elements {
			part, err := of(element)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ",") + "]", nil
	}
}

func mapOf(of shape) shape {
	return func(v any) (string, error) {
		if v == nil {
			return "null", nil
		}
		object, ok := v.(record)
		if !ok || repeats(object) {
			return "", errRefused
		}
		object = slices.Clone(object)
		sort.Slice(object, func(i, j int) bool { return object[i].name < object[j].name })
		var parts []string
		for _, e := range object {
			part, err := of(e.value)
			if err != nil {
				return "", err
			}
			parts = append(parts, quote(e.name)+":"+part)
		}
		return "{" + strings.Join(parts, ",") + "}", nil
	}
}

func repeats(object record) bool {
	seen := map[string]bool{}
	for _, e := range object {
		if seen[e.name] {
			return true
		}
		seen[e.name] = true
	}
	return false
}

func nullable(of shape) shape {
	return func(v any) (string, error) {
		if v == nil {
			return "null", nil
		}
		return of(v)
	}
}

// field is a field of an object; one whose name ends with "?" is left out where it is empty.
type field struct {
	name string
	is   shape
}

func object(fields ...field) shape {
	return func(v any) (string, error) {
		given, ok := v.(record)
		if v != nil && !ok || repeats(given) {
			return "", errRefused
		}
		var parts []string
		known := map[string]bool{}
		for _, f := range fields {
			name, optional := strings.CutSuffix(f.name, "?")
			known[name] = true
			value, _ := given.get(name)
			part, err := f.is(value)
			if err != nil {
				return "", err
			}
			if !optional || !slices.Contains([]string{"false", "0", `""`, "null", "[]", "{}", ""}, part) {
				parts = append(parts, quote(name)+":"+part)
			}
		}
		for _, e := range given {
			if !known[e.name] && !hollow(e.value) {
				return "", errRefused
			}
		}
		return "{" + strings.Join(parts, ",") + "}", nil
	}
}

func hollow(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case record:
		return len(v) == 0
	case numeral:
		f, err := strconv.ParseFloat(string(v), 64)
		return err == nil && f == 0
	default:
		return v == false || v == ""
	}
}

func float(v numeral) (string, error) {
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil {
		return "", errRefused
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		s := strconv.FormatFloat(f, 'e', -1, 64)
		return strings.Replace(s, "e-0", "e-", 1), nil
	}
	return strconv.FormatFloat(f, 'f', -1, 64), nil
}

// freely is any JSON: nil is a value here, and the field is absent where its shape gives "".
func freely(sorted bool) shape {
	return func(v any) (string, error) {
		switch v := v.(type) {
		case nil:
			return "null", nil
		case string:
			return text(v)
		case bool:
			return truth(v)
		case numeral:
			return float(v)
		case []any:
			return list(freely(sorted))(v)
		case record:
			if sorted {
				return mapOf(freely(sorted))(v)
			}
			return inOrder(v)
		}
		return "", errRefused
	}
}

func inOrder(v record) (string, error) {
	if repeats(v) {
		return "", errRefused
	}
	var parts []string
	for _, e := range v {
		part, err := freely(false)(e.value)
		if err != nil {
			return "", err
		}
		parts = append(parts, quote(e.name)+":"+part)
	}
	return "{" + strings.Join(parts, ",") + "}", nil
}

func profileShape() shape {
	strs := list(text)
	selector := object(field{"matchLabels?", mapOf(text)}, field{"matchExpressions?", list(requirement())})
	port := object(field{"name", text}, field{"protocol", text}, field{"port", nullable(integer("-2147483648", "2147483647"))})
	neighbors := list(object(
		field{"identifier", text}, field{"type", text}, field{"dns", text}, field{"dnsNames", strs}, field{"ports", list(port)},
		field{"podSelector", nullable(selector)}, field{"namespaceSelector", nullable(selector)}, field{"ipAddress", text},
	))
	stack := object(field{"callID", text}, field{"callStack", object(field{"root", node})})
	return object(
		field{"architectures", strs}, field{"capabilities", strs},
		field{"execs", list(object(field{"path?", text}, field{"args?", strs}, field{"envs?", strs}, field{"parentPath?", text}))},
		field{"opens", list(object(field{"path", text}, field{"flags", strs}))},
		field{"syscalls", strs}, field{"seccompProfile", seccompShape()},
		field{"endpoints", list(endpoint)}, field{"imageID", text}, field{"imageTag", text},
		field{"rulePolicies", func(v any) (string, error) {
			if v == nil {
				return "{}", nil
			}
			return mapOf(object(field{"processAllowed?", strs}, field{"containerAllowed?", truth}))(v)
		}},
		field{"identifiedCallStacks", list(stack)},
		field{"matchLabels?", mapOf(text)}, field{"matchExpressions?", list(requirement())},
		field{"ingress", neighbors}, field{"egress", neighbors},
	)
}

func requirement() shape {
	return object(field{"key", text}, field{"operator", text}, field{"values?", list(text)})
}

func node(v any) (string, error) {
	frame := object(field{"fileID", text}, field{"lineno", text}, field{"frameType", number()})
	return object(field{"children", list(node)}, field{"frame", frame})(v)
}

func endpoint(v any) (string, error) {
	given := as[record](v)
	fields := []field{{"endpoint?", text}, {"methods?", list(text)}, {"internal", truth}, {"direction?", text}}
	if _, ok := given.get("headers"); ok {
		return object(append(fields, field{"headers", freely(false)})...)(v)
	}
	return object(fields...)(v)
}

func seccompShape() shape {
	strs := list(text)
	arg := object(field{"index", unsigned()}, field{"value?", unsigned()}, field{"valueTwo?", unsigned()}, field{"op", text})
	syscall := object(field{"names", strs}, field{"action", text}, field{"errnoRet?", unsigned()}, field{"args?", list(arg)})
	return object(field{"name?", text}, field{"path?", text}, field{"spec", object(
		field{"disabled?", truth}, field{"baseProfileName?", text}, field{"defaultAction", text}, field{"architectures?", strs},
		field{"listenerPath?", text}, field{"listenerMetadata?", text}, field{"syscalls?", list(syscall)}, field{"flags?", strs},
	)})
}

func rulesShape() shape {
	strs := list(text)
	pattern := object(field{"exact?", text}, field{"prefix?", text}, field{"suffix?", text}, field{"contains?", text})
	need := func(v any) (string, error) {
		elements, isList := v.([]any)
		switch {
		case v == nil:
			return "null", nil
		case v == "all":
			return `"all"`, nil
		case isList && len(elements) > 0:
			return list(pattern)(v)
		}
		return "", errRefused
	}
	var needs []field
	for _, name := range strings.Fields("opens execs capabilities syscalls endpoints egressDomains egressAddresses ingressDomains ingressAddresses") {
		needs = append(needs, field{name, need})
	}
	expression := object(field{"eventType", text}, field{"expression", text})
	return object(field{"rules", list(object(
		field{"enabled", truth}, field{"id", text}, field{"name", text}, field{"description", text},
		field{"expressions", object(field{"message", text}, field{"uniqueId", text}, field{"ruleExpression", list(expression)})},
		field{"profileDependency", number()}, field{"profileDataRequired?", nullable(object(needs...))}, field{"severity", number()},
		field{"supportPolicy", truth}, field{"tags", strs}, field{"state?", mapOf(freely(true))}, field{"agentVersionRequirement", text},
		field{"isTriggerAlert", truth}, field{"mitreTactic", text}, field{"mitreTechnique", text},
	))})
}

func oracleKinds() map[string]struct {
	api  string
	spec shape
} {
	const spdx, kubescape = "spdx.softwarecomposition.kubescape.io/v1beta1", "kubescape.io/v1"
	return map[string]struct {
		api  string
		spec shape
	}{
		"ContainerProfile":        {spdx, profileShape()},
		"Rules":                   {kubescape, rulesShape()},
		"RuntimeRuleAlertBinding": {kubescape, freely(false)},
		"SeccompProfile":          {spdx, freely(false)},
	}
}

// oracleContent is the content of a carrier, or what that of embedded content should be.
func oracleContent(kind, name string, labels record, spec any) (string, error) {
	k, ok := oracleKinds()[kind]
	if !ok {
		return "", errRefused
	}
	written, err := k.spec(spec)
	if err != nil {
		return "", err
	}
	all := "null"
	if len(labels) > 0 {
		if all, err = mapOf(text)(labels); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf(`{"apiVersion":%s,"kind":%s,"metadata":{"labels":%s,"name":%s},"spec":%s}`, quote(k.api), quote(kind), all, quote(name), written), nil
}

// oracleVerify gives digest and signer of a carrier, or an error.
func oracleVerify(carrier []byte) (digest, signer string, err error) {
	v, err := readJSON(string(carrier))
	if err != nil {
		return "", "", err
	}
	o := as[record](v)
	get := func(names ...string) any {
		var at any = o
		for _, name := range names {
			at, _ = as[record](at).get(name)
		}
		return at
	}
	str := func(names ...string) string { return as[string](get(names...)) }
	kind, name := str("kind"), str("metadata", "name")
	if k, ok := oracleKinds()[kind]; !ok || k.api != str("apiVersion") {
		return "", "", errRefused
	}
	const s = "signature.kubescape.io/"
	labels := as[record](get("metadata", "labels"))
	var content string
	if embedded, ok := get("metadata", "annotations", s+"content").(string); ok {
		content, labels, err = oracleUnpack(embedded, kind, name)
	} else {
		content, err = oracleContent(kind, name, labels, get("spec"))
	}
	if err != nil {
		return "", "", err
	}
	if version, ok := labels.get(s + "version"); ok && !oracleVersion(version) {
		return "", "", errRefused
	}
	tree, err := readJSON(content)
	if err != nil {
		return "", "", err
	}
	if digest, err = oracleHash(tree, ""); err != nil {
		return "", "", err
	}
	signer, err = oracleSignature(str("metadata", "annotations", s+"signature"), str("metadata", "annotations", s+"certificate"), digest)
	return digest, signer, err
}

func oracleVersion(v any) bool {
	s, ok := v.(string)
	n, err := strconv.ParseInt(s, 10, 64)
	return ok && err == nil && n >= 0 && strconv.FormatInt(n, 10) == s
}

func oracleUnpack(embedded, kind, name string) (string, record, error) {
	packed, err := oracleBase64(embedded)
	if err != nil {
		return "", nil, err
	}
	in := bytes.NewReader(packed)
	z, err := gzip.NewReader(in)
	if err != nil {
		return "", nil, err
	}
	z.Multistream(false)
	content, err := io.ReadAll(z)
	if err != nil || in.Len() > 0 || len(content) > 8<<20 {
		return "", nil, errRefused
	}
	v, err := readJSON(string(content))
	if err != nil {
		return "", nil, err
	}
	document := as[record](v)
	labels := document.of("metadata").of("labels")
	spec, _ := document.get("spec")
	again, err := oracleContent(kind, name, labels, spec)
	if err != nil || again != string(content) {
		return "", nil, errRefused
	}
	return again, labels, nil
}

func oracleBase64(text string) ([]byte, error) {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil || base64.StdEncoding.EncodeToString(decoded) != text {
		return nil, errRefused
	}
	return decoded, nil
}

func oracleSignature(signature, certificate, digest string) (string, error) {
	der, err := oracleBase64(signature)
	if err != nil {
		return "", err
	}
	armored, err := oracleBase64(certificate)
	if err != nil {
		return "", err
	}
	block, rest := pem.Decode(armored)
	if block == nil || block.Type != "CERTIFICATE" || strings.TrimSpace(string(rest)) != "" {
		return "", errRefused
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", err
	}
	key, ok := c.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return "", errRefused
	}
	if !oracleECDSA(key, c.RawTBSCertificate, c.Signature) || !oracleECDSA(key, []byte(digest), der) {
		return "", errRefused
	}
	return "key:" + hexHash(string(c.RawSubjectPublicKeyInfo)), nil
}

func oracleECDSA(key *ecdsa.PublicKey, message, der []byte) bool {
	var s struct{ R, S *big.Int }
	rest, err := asn1.Unmarshal(der, &s)
	if err != nil || len(rest) > 0 {
		return false
	}
	again, err := asn1.Marshal(s)
	sum := sha256.Sum256(message)
	return err == nil && bytes.Equal(again, der) && ecdsa.Verify(key, sum[:], s.R, s.S)
}
