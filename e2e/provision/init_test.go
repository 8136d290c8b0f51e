//go:build linux

package provision

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/testkit"
)

// From nothing to a host that joins one cluster and no other: init, provision, sign, join.
func TestAHostOfTheFirstPolicyJoinsItsClusterAndNoOther(t *testing.T) {
	w := newWorld(t)
	const endpoint = "https://10.0.0.5:6443"
	var authorities [2][]byte
	for i := range authorities {
		var err error
		if authorities[i], err = testkit.ClusterCA(); err != nil {
			t.Fatal(err)
		}
	}
	testkit.WriteFile(t, w.dir, "ca.crt", authorities[0])
	run := func(args ...string) {
		if r := w.hostwarrant(t, args...); r.code != 0 {
			t.Fatalf("%q: exit %d, %s", args, r.code, r.err)
		}
	}
	run("init", "keys", "--cluster", "prod-1="+endpoint, "--cluster-ca", "prod-1=ca.crt")
	flags := []string{
		"--policy", "keys/trust-policy.yaml", "--root", "keys/root.pub", "--cluster", "prod-1", "--class", "default",
		"--login-key", "login.pub", "--from", shared.Lab(t).Addr().String(), "--checksums", "SHA256SUMS", "--release-key", "release.pub",
	}
	h := w.bare(t, nil)
	put(t, h, "/root/setup.sh", []byte(w.provision(t, flags...)), 0o700)
	h.Must(t, "/root/setup.sh && mkdir /root/w/keys")
	for _, name := range []string{"trust-policy.yaml", "root.pub"} {
		put(t, h, "/root/w/keys/"+name, []byte(w.read(t, "keys/"+name)), 0o644)
	}
	wantGreen(t, on(t, h, "cd /root/w && hostwarrant host check '"+strings.Join(flags, "' '")+"'"))

	if err := os.Mkdir(filepath.Join(w.dir, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, phase := range []string{"install", "join", "leave"} {
		testkit.WriteFile(t, w.dir, "scripts/"+phase+".sh", []byte("#!/bin/bash\necho \"$KPSSH_CLUSTER_ENDPOINT\"\n"))
	}
	run("sign", "scripts", "--key", "keys/signer", "--profile", "demo", "--serial", "1", "--target", "class default", "-o", "profile.yaml")
	run("verify", "profile.yaml", "--policy", "keys/trust-policy.yaml", "--root", "keys/root.pub", "--cluster", "prod-1")
	for name, c := range map[string]struct {
		endpoint string
		ca       []byte
		code     int
		out      string
	}{
		"its cluster":                 {endpoint, authorities[0], 0, endpoint + "\n"},
		"another API server":          {"https://10.0.0.6:6443", authorities[0], 3, ""},
		"another CA":                  {endpoint, authorities[1], 3, ""},
		"its CA without the last LF":  {endpoint, authorities[0][:len(authorities[0])-1], 3, ""},
		"its CA, and another as well": {endpoint, append(authorities[0][:len(authorities[0]):len(authorities[0])], authorities[1]...), 3, ""},
	} {
		params := fmt.Sprintf("KPSSH_CLUSTER_CA_B64=%s\nKPSSH_CLUSTER_ENDPOINT=%s\n", base64.StdEncoding.EncodeToString(c.ca), c.endpoint)
		e := envelopeWith("join", params, w.read(t, "scripts/join.sh"), w.read(t, "scripts/join.sh.sig"))
		if r := w.send(t, h, e); r.code != c.code || r.out != c.out {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
