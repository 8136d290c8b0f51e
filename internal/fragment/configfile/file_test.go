package configfile_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment/configfile"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
	"github.com/hostwarrant/hostwarrant/testkit"
)

const config = `{"bundleTrustPolicyPath": "/etc/bundle/trust-policy.json", "intervals": [1.5, 30], "on": true}`

func file(t *testing.T, config string, annotations map[string]string) string {
	t.Helper()
	all, err := json.Marshal(annotations)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"config": %s, "annotations": %s}`, config, all)
}

func reason(text string, root *ecdsa.PublicKey) (decision.Reason, error) {
	f, err := configfile.Parse([]byte(text))
	if err == nil {
		err = f.Verify(root)
	}
	if err != nil {
		return decision.From(err).Reason, err
	}
	return decision.Verified, nil
}

// The attacks on a configuration (F1 of the format's list).
func TestSignedConfiguration(t *testing.T) {
	root, other := testkit.NewFragmentSigner(t), testkit.NewFragmentSigner(t)
	good := root.Annotations(t, []byte(config), false)
	with := func(name, value string) map[string]string {
		all := root.Annotations(t, []byte(config), false)
		all[name] = value
		return all
	}
	whole := file(t, config, good)
	for name, tt := range map[string]struct {
		text string
		want decision.Reason
	}{
		"as it is":                   {whole, decision.Verified},
		"with its fields reordered":  {file(t, `{"on": true, "intervals": [1.5, 30], "bundleTrustPolicyPath": "/etc/bundle/trust-policy.json"}`, good), decision.Verified},
		"a number written otherwise": {file(t, strings.Replace(config, "30", "3e1", 1), good), decision.Verified},
		"edited":                     {file(t, strings.Replace(config, "true", "false", 1), good), decision.Tampered},
		"a field more":               {file(t, strings.Replace(config, "{", `{"x":1,`, 1), good), decision.Tampered},
		"signed by another key":      {file(t, config, other.Annotations(t, []byte(config), false)), decision.SignerUnknown},
		"with embedded content":      {file(t, config, with(signature.AnnotationContent, "")), decision.SignatureMalformed},
		"without annotations":        {`{"config": ` + config + `}`, decision.Unsigned},
		"annotations that are null":  {`{"config": ` + config + `, "annotations": null}`, decision.Unsigned},
		"annotations as a list":      {`{"config": ` + config + `, "annotations": []}`, decision.Malformed},
		"no configuration":           {`{"annotations": {}}`, decision.Malformed},
		"null as configuration":      {file(t, "null", good), decision.Malformed},
		"a list as configuration":    {file(t, "[]", root.Annotations(t, []byte("[]"), false)), decision.Malformed},
		"a text as configuration":    {file(t, `"x"`, root.Annotations(t, []byte(`"x"`), false)), decision.Malformed},
		"a field beside it":          {strings.Replace(whole, "{", `{"extra": 1, `, 1), decision.Malformed},
		"in other letters":           {strings.Replace(whole, `"config"`, `"Config"`, 1), decision.Malformed},
		"twice":                      {strings.Replace(whole, "{", `{"config": {"evil": 1}, `, 1), decision.NotCanonical},
		"a field twice":              {strings.Replace(whole, `{"bundle`, `{"on": false, "bundle`, 1), decision.NotCanonical},
		"text behind it":             {whole + "{}", decision.Malformed},
		"white space behind it":      {whole + "\n", decision.Verified},
		"a list":                     {"[" + whole + "]", decision.Malformed},
		"no JSON":                    {whole[1:], decision.Malformed},
		"a number without a value":   {file(t, `{"a": 1e999}`, good), decision.Malformed},
		"a MiB":                      {whole + strings.Repeat(" ", configfile.MaxFile-len(whole)), decision.Verified},
		"a byte more":                {whole + strings.Repeat(" ", configfile.MaxFile-len(whole)+1), decision.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := reason(tt.text, &root.Key.PublicKey); got != tt.want {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
		})
	}
	wide, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []*ecdsa.PublicKey{nil, &wide.PublicKey} {
		if got, err := reason(whole, key); got != decision.KeyTypeRefused {
			t.Errorf("got %s (%v)", got, err)
		}
	}
}
