package canonical_test

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/canonical"
)

func hash(t testing.TB, document string) string {
	t.Helper()
	h, err := canonical.Hash([]byte(document))
	if err != nil {
		t.Fatalf("%.80s: %v", document, err)
	}
	return h
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

func TestVectors(t *testing.T) {
	one := sum("\x3f\xf0\x00\x00\x00\x00\x00\x00")
	for document, want := range map[string]string{
		`{"a":null,"b":[1,"x"],"c":{}}`: "64e283dfde9b08785c2544d46ceb4171e8e43ee68ed51072d02c7240dc3fb74a",
		`null`:                          sum("null"),
		"\ttrue\n":                      sum("true"),
		`false`:                         sum("false"),
		`"⋯"`:                           sum("⋯"),
		`"\u22ef"`:                      sum("⋯"),
		`"\ud800"`:                      sum("\ufffd"),
		"\"\xff\xfe\"":                  sum("\ufffd\ufffd"),
		`1`:                             one,
		`10e-1`:                         one,
		`-0`:                            sum("\x80\x00\x00\x00\x00\x00\x00\x00"),
		`[]`:                            sum(""),
		`{}`:                            sum(""),
		`["x"]`:                         sum(sum("x")),
		`["x","x"]`:                     sum(sum("x") + "|" + sum("x")),
		`{"a":"x"}`:                     sum(sum("a") + ":" + sum("x")),
		`{"a":{"a":"x"}}`:               sum(sum("a") + ":" + sum(sum("a")+":"+sum("x"))),
	} {
		if got := hash(t, document); got != want {
			t.Errorf("%s: %s, want %s", document, got, want)
		}
	}
}

// The format's own weaknesses, and the near miss of each.
func TestWhatHashesAlike(t *testing.T) {
	for name, tt := range map[string]struct{ a, same, other string }{
		"order of a list":              {`{"a":[1,"x",null]}`, `{"a":[null,"x",1]}`, `{"a":[null,"x",2]}`},
		"order of names":               {`{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"b":1,"a":2}`},
		"the last of a name counts":    {`{"a":1,"b":0,"a":2}`, `{"a":2,"b":0}`, `{"a":1,"b":0}`},
		"so it does of three":          {`{"a":1,"a":2,"a":3}`, `{"a":3}`, `{"a":2}`},
		"null and its name":            {`null`, `"null"`, `""`},
		"what is empty":                {`[]`, `{}`, `null`},
		"an empty string too":          {`{}`, `""`, `[""]`},
		"a list and its text":          {`["x"]`, `"` + sum("x") + `"`, `"x"`},
		"numbers beyond 2^53":          {`9007199254740993`, `9007199254740992`, `9007199254740994`},
		"conditions of the status":     {`{"status":{"conditions":[1],"x":2}}`, `{"status":{"x":2}}`, `{"status":{"x":3}}`},
		"as one name":                  {`{"status.conditions":1,"x":2}`, `{"x":2}`, `{"status.condition":1,"x":2}`},
		"conditions below a list":      {`{"status":[{"conditions":1}]}`, `{"status":[{}]}`, `{"status":[{"condition":1}]}`},
		"a list at the top":            {`[{"status":{"conditions":1}}]`, `[{"status":{}}]`, `[{"status":{"condition":1}}]`},
		"conditions anywhere else":     {`{"spec":{"conditions":1}}`, `{"spec":{"conditions":1.0}}`, `{"spec":{}}`},
		"conditions at the top":        {`{"conditions":1}`, `{"conditions":1e0}`, `{}`},
		"a status below":               {`{"a":{"status":{"conditions":1}}}`, `{"a":{"status":{"conditions":1}}} `, `{"a":{"status":{}}}`},
		"the dotted name further down": {`{"status":{"status.conditions":1}}`, `{"status":{"status.conditions":1.0}}`, `{"status":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if hash(t, tt.a) != hash(t, tt.same) {
				t.Errorf("%s and %s hash otherwise", tt.a, tt.same)
			}
			if hash(t, tt.a) == hash(t, tt.other) {
				t.Errorf("%s and %s hash alike", tt.a, tt.other)
			}
		})
	}
}

func TestWhatHasNoHash(t *testing.T) {
	for name, tt := range map[string]struct {
		document string
		want     decision.Reason
	}{
		"nothing":             {``, decision.Malformed},
		"half an object":      {`{"a":1`, decision.Malformed},
		"two documents":       {`{} {}`, decision.Malformed},
		"a number too large":  {`{"a":[1e999]}`, decision.Malformed},
		"one that is not":     {`{"a":[1e308]}`, decision.Verified},
		"one that is nothing": {`1e-999`, decision.Verified},
		"too deep":            {strings.Repeat("[", 10001) + strings.Repeat("]", 10001), decision.Malformed},
		"as deep as goes":     {strings.Repeat("[", 10000) + strings.Repeat("]", 10000), decision.Verified},
		"too many values":     {"[" + strings.Repeat("0,", canonical.MaxValues-1) + "0]", decision.TooLarge},
		"as many as go":       {"[" + strings.Repeat("0,", canonical.MaxValues-2) + "0]", decision.Verified},
	} {
		t.Run(name, func(t *testing.T) {
			got := decision.Verified
			if _, err := canonical.Hash([]byte(tt.document)); err != nil {
				got = decision.From(err).Reason
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// The hash comes before the signature, so what it costs is bounded: memory, of the worst documents that
// it takes, by a small multiple of their size.
func TestCostOfTheWorstDocuments(t *testing.T) {
	for name, document := range map[string]string{
		"many values":      "[" + strings.Repeat("0,", canonical.MaxValues-2) + "0]",
		"many objects":     "[" + strings.Repeat("{},", canonical.MaxValues-2) + "0]",
		"one name":         "{" + strings.Repeat(`"":0,`, canonical.MaxValues-2) + `"":0}`,
		"deep, long names": strings.Repeat(`{"`+strings.Repeat("x", 800)+`":`, 9999) + "0" + strings.Repeat("}", 9999),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			hash(t, document)
			runtime.ReadMemStats(&after)
			if mebibytes := (after.TotalAlloc - before.TotalAlloc) >> 20; mebibytes > 256 {
				t.Errorf("allocates %d MiB", mebibytes)
			}
		})
	}
}
