package allowedsigners_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/allowedsigners"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestSpellingsThatAreRead(t *testing.T) {
	key := testkit.NewSigner(t, "ed25519")
	keyType, encoded, _ := strings.Cut(key.Line, " ")
	signature := testkit.Sign(t, key, namespace, message)
	for name, text := range map[string]string{
		"plain":                     "alice " + key.Line + "\n",
		"without a last LF":         "alice " + key.Line,
		"with a comment":            "alice " + key.Line + " alice at home # really\n",
		"CRLF":                      "# who\r\n\r\nalice " + key.Line + "\r\n",
		"tabs and more blanks":      "\t alice \t " + keyType + "\t  " + encoded + "\t\n",
		"comments and blank lines":  "# a\n \t\n\n  # b\nalice " + key.Line + "\n\n",
		"quoted principals":         `"alice" ` + key.Line,
		"quoted, with a blank":      `"bob jones,alice" ` + key.Line,
		"all options":               `alice namespaces="kpssh,file",valid-after="20200101Z",valid-before="20990101Z" ` + key.Line,
		"options in capitals":       `alice NAMESPACES="kpssh",Valid-Before="20990101Z" ` + key.Line,
		"the long forms of times":   `alice valid-after="20261130115959Z",valid-before="202611301201Z" ` + key.Line,
		"after a line that has not": "alice " + testkit.NewSigner(t, "ecdsa256").Line + "\nalice " + key.Line,
		"after one that ended":      `alice valid-before="20200101Z" ` + key.Line + "\nalice " + key.Line,
	} {
		t.Run(name, func(t *testing.T) {
			q := ask(text, signature, "alice")
			want(t, q, decision.Verified)
			if !q.keygen(t) {
				t.Error("ssh-keygen refuses it")
			}
		})
	}
}

func TestLinesThatCannotBeRead(t *testing.T) {
	key := testkit.NewSigner(t, "ed25519")
	keyType, encoded, _ := strings.Cut(key.Line, " ")
	c := testkit.Certify(t, key, key.PublicKey(), []string{"alice"}, nil)
	for name, line := range map[string]string{
		"a word":                      "alice",
		"a word and a blank":          "alice ",
		"a key alone":                 key.Line,
		"options and no key":          `alice namespaces="kpssh"`,
		"options and a blank":         `alice namespaces="kpssh" `,
		"a type and no key":           "alice " + keyType,
		"a type and a blank":          "alice " + keyType + " ",
		"a key of no type":            "alice " + encoded,
		"a key cut short":             "alice " + key.Line[:len(key.Line)-8],
		"a type that is not its own":  "alice ssh-rsa " + encoded,
		"a NUL":                       "alice " + key.Line + " \x00",
		"a NUL in the principals":     "al\x00ice " + key.Line,
		"a CR inside":                 "alice\r" + key.Line,
		"an escape":                   "alice " + key.Line + " \x1b[2J",
		"a DEL":                       "alice " + key.Line + " \x7f",
		"an open quote":               `"alice ` + key.Line,
		"a key right after the quote": `"alice"` + key.Line,
		"a quote inside":              `ali"ce" ` + key.Line,
		"a pattern of 1023 bytes":     strings.Repeat("a", 1023) + ",alice " + key.Line,
		"an option without value":     "alice namespaces " + key.Line,
		"a value without quotes":      "alice namespaces=kpssh " + key.Line,
		"a quote that stays open":     `alice namespaces="kpssh ` + key.Line,
		"a backslash":                 `alice namespaces="kps\sh" ` + key.Line,
		"a flag with a value":         `alice cert-authority="yes" ` + key.Line,
		"an unknown option":           `alice no-touch-required ` + key.Line,
		"an unknown option, a value":  `alice x="y" ` + key.Line,
		"a name that goes on":         `alice cert-authorityx ` + key.Line,
		"something after a value":     `alice namespaces="kpssh"x ` + key.Line,
		"a semicolon":                 `alice namespaces="kpssh";cert-authority ` + key.Line,
		"a blank after the comma":     `alice cert-authority, namespaces="kpssh" ` + key.Line,
		"a comma too many":            `alice cert-authority,,namespaces="kpssh" ` + key.Line,
		"a comma before the options":  `alice ,cert-authority ` + key.Line,
		"namespaces twice":            `alice namespaces="a",namespaces="b" ` + key.Line,
		"cert-authority twice":        `alice cert-authority,CERT-AUTHORITY ` + key.Line,
		"a time of nowhere":           `alice valid-before="20990101" ` + key.Line,
		"a time with UTC":             `alice valid-before="20990101UTC" ` + key.Line,
		"a time with dashes":          `alice valid-before="2099-01-01Z" ` + key.Line,
		"a day that is not":           `alice valid-before="20990231Z" ` + key.Line,
		"a month that is not":         `alice valid-before="20991301Z" ` + key.Line,
		"a leap second":               `alice valid-before="20161231235960Z" ` + key.Line,
		"the hour 24":                 `alice valid-before="2099010124Z" ` + key.Line,
		"a time of 11 digits":         `alice valid-before="20990101120Z" ` + key.Line,
		"always":                      `alice valid-before="always" ` + key.Line,
		"an empty time":               `alice valid-before="" ` + key.Line,
		"a time before 1970":          `alice valid-before="19691231Z" ` + key.Line,
		"the start of 1970":           `alice valid-after="19700101Z" ` + key.Line,
		"an end before the beginning": `alice valid-after="20300101Z",valid-before="20290101Z" ` + key.Line,
		"an end at the beginning":     `alice valid-after="20300101Z",valid-before="20300101Z" ` + key.Line,
		"options after the key":       `alice ` + keyType + ` namespaces="kpssh" ` + encoded,
		"a byte order mark":           "\ufeff# signers",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := allowedsigners.Parse([]byte("# signers\nalice " + key.Line + "\n" + line + "\n"))
			if err == nil {
				t.Fatal("read")
			}
			if e := decision.From(err); e.Reason != decision.Malformed || e.Where != "line 3" {
				t.Errorf("got %v at %q, want Malformed at line 3", e, e.Where)
			}
		})
	}
	for name, line := range map[string]string{
		"a certificate for a key": strings.TrimSpace(string(ssh.MarshalAuthorizedKey(c))),
		"an RSA key of 2048 bits": testkit.NewSigner(t, "rsa2048").Line,
	} {
		_, err := allowedsigners.Parse([]byte("alice " + line + "\n"))
		if e := decision.From(err); err == nil || e.Reason != decision.KeyTypeRefused || e.Where != "line 1" {
			t.Errorf("%s: got %v, want KeyTypeRefused at line 1", name, err)
		}
	}
}

func TestBounds(t *testing.T) {
	for name, text := range map[string]string{
		"bytes": strings.Repeat("#", allowedsigners.MaxSize+1),
		"lines": strings.Repeat("\n", allowedsigners.MaxLines),
	} {
		if _, err := allowedsigners.Parse([]byte(text)); err == nil || decision.From(err).Reason != decision.TooLarge {
			t.Errorf("too many %s: %v", name, err)
		}
	}
	parse(t, strings.Repeat("#", allowedsigners.MaxSize))
	parse(t, strings.Repeat("\n", allowedsigners.MaxLines-1))
	key := testkit.NewSigner(t, "ed25519")
	parse(t, strings.Repeat("a", 1022)+",!"+strings.Repeat("b", 1022)+" "+key.Line)
}

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true},
		{"*", "x", true},
		{"", "", true},
		{"", "x", false},
		{"a", "a", true},
		{"a", "b", false},
		{"a", "A", false},
		{"a", "ab", false},
		{"?", "a", true},
		{"?", "", false},
		{"?", "é", false},
		{"join@*", "join@tls", true},
		{"join@*", "leave@tls", false},
		{"*@tls-*", "join@tls-a", true},
		{"*a*b", "xaxbxb", true},
		{"*a*b", "xaxbx", false},
		{"a**b", "ab", true},
		{"*?", "", false},
		{"*?", "x", true},
		{"[a]", "a", false},
		{`\*`, "*", false},
	} {
		if got := allowedsigners.Glob(tt.pattern, tt.s); got != tt.want {
			t.Errorf("Glob(%q, %q) is %v", tt.pattern, tt.s, got)
		}
	}
}

// TestManyPatterns: a list that is made to be slow is not.
func TestManyPatterns(t *testing.T) {
	key := testkit.NewSigner(t, "ed25519")
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "%s,a%d %s\n", strings.Repeat("*a", 500)+"b", i, key.Line)
	}
	want(t, ask(text.String(), testkit.Sign(t, key, namespace, message), strings.Repeat("a", 1000)), decision.SignerScope)
}
