package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/hostwarrant/hostwarrant/internal/inforce"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func TestUsage(t *testing.T) {
	cases := map[string]struct {
		args []string
		code int
		out  string
		errs string
	}{
		"help":                     {[]string{"--help"}, 0, "--anchor", ""},
		"no anchor":                {[]string{"--namespaces", "pool"}, 2, "", "--anchor is missing"},
		"a namespace that is none": {[]string{"--anchor", "x", "--namespaces", "pool,*"}, 2, "", `"*" is no namespace`},
		"an unknown flag":          {[]string{"--force"}, 2, "", "unknown flag"},
		"an extra argument":        {[]string{"x"}, 2, "", "unknown command"},
		"too many hosts at once":   {[]string{"--anchor", "x", "--namespaces", "pool", "--concurrent-hosts", "1001"}, 2, "", "--concurrent-hosts"},
		"no hosts at once":         {[]string{"--anchor", "x", "--namespaces", "pool", "--concurrent-hosts", "0"}, 2, "", "--concurrent-hosts"},
		"help of mint":             {[]string{"mint", "--help"}, 0, "bootstrap tokens", ""},
		"mint without an anchor":   {[]string{"mint"}, 2, "", "--anchor is missing"},
		"mint dials no hosts":      {[]string{"mint", "--anchor", "x", "--concurrent-hosts", "5"}, 2, "", "unknown flag"},
		"mint takes no argument":   {[]string{"mint", "--anchor", "x", "y"}, 2, "", "unknown command"},
		"mint's anchor is absent":  {[]string{"mint", "--anchor", "/nonexistent"}, 1, "", "reading the anchor"},
		"a proof that is neither":  {[]string{"mint", "--anchor", "x", "--proof", "Off"}, 2, "", "--proof"},
		"no word on proofs":        {[]string{"mint", "--anchor", "x", "--proof", ""}, 2, "", "--proof"},
		"a CA of no verifier":      {[]string{"mint", "--anchor", "x", "--verifier-ca", "ca.pem"}, 2, "", "without --verifier-url"},
		"a relay proves nothing":   {[]string{"--anchor", "x", "--proof", "off"}, 2, "", "unknown flag"},
		"a verifier without TLS":   {[]string{"mint", "--anchor", "x", "--verifier-url", "http://a/"}, 2, "", "https://HOST"},
		"a verifier's CA is gone":  {[]string{"mint", "--anchor", "x", "--verifier-url", "https://a/", "--verifier-ca", "/nonexistent"}, 2, "", "--verifier-ca"},
		"an anchor that is absent": {[]string{"--anchor", "/nonexistent", "--namespaces", "pool"}, 1, "", "reading the anchor"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			if code := run(t.Context(), c.args, nil, &out, &errs); code != c.code {
				t.Fatalf("exit %d, want %d: %s", code, c.code, errs.String())
			}
			if !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
				t.Fatalf("stdout %q, stderr %q", out.String(), errs.String())
			}
		})
	}
}

func TestReadAnchor(t *testing.T) {
	root := testkit.NewSigner(t, "ed25519")
	cases := map[string]struct{ roots, id, want string }{
		"a good one":      {root.Line + "\n", "prod-1\n", ""},
		"no root":         {"# none\n", "prod-1\n", "roots"},
		"no cluster id":   {root.Line, "\n", "cluster-id"},
		"two cluster ids": {root.Line, "prod-1\nprod-2\n", "cluster-id"},
		"a large file":    {strings.Repeat("#\n", inforce.MaxAnchorFile), "prod-1", "longer than"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			testkit.WriteFile(t, dir, "roots", []byte(c.roots))
			testkit.WriteFile(t, dir, "cluster-id", []byte(c.id))
			a, err := readAnchor(dir)
			if c.want == "" {
				if err != nil || a.ClusterID != "prod-1" || len(a.Roots.Keys) != 1 {
					t.Fatalf("%+v, %v", a, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want %q", err, c.want)
			}
		})
	}
	dir := t.TempDir()
	testkit.WriteFile(t, dir, "roots", []byte(root.Line))
	if _, err := readAnchor(dir); err == nil {
		t.Fatal("an anchor without cluster-id was read")
	}
}

func TestOwnCA(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(path, []byte("pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config rest.Config
		want   string
		fails  bool
	}{
		"a file":        {rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: path}}, "pem", false},
		"data":          {rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: []byte("data"), CAFile: path}}, "data", false},
		"none":          {rest.Config{}, "", false},
		"a file astray": {rest.Config{TLSClientConfig: rest.TLSClientConfig{CAFile: path + "x"}}, "", true},
	} {
		got, err := ownCA(&c.config)
		if string(got) != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
