package main

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// namedClusters are the clusters that a new policy is for.
type namedClusters struct {
	named []string // as the flags name them
	ids   []string // each once, in that order
	of    map[string]namedCluster
}

type namedCluster struct {
	Endpoints []string `json:"endpoints,omitempty"`
	CASHA256  []string `json:"caSHA256,omitempty"`
}

// pinned tells a cluster by which a host can be held: it has an endpoint and a CA.
func (c namedCluster) pinned() bool { return len(c.Endpoints) > 0 && len(c.CASHA256) > 0 }

// readClusters reads --cluster, each ID or ID=URL, and --cluster-ca, each ID=FILE.
func readClusters(named, authorities []string) (namedClusters, error) {
	all := namedClusters{named: named, of: map[string]namedCluster{}}
	for _, text := range named {
		id, url, given := strings.Cut(text, "=")
		one, again := all.of[id]
		if !again {
			all.ids = append(all.ids, id)
		}
		if given {
			one.Endpoints = append(one.Endpoints, url)
		}
		all.of[id] = one
	}
	for _, text := range authorities {
		id, path, given := strings.Cut(text, "=")
		one, known := all.of[id]
		if !given || !known {
			return all, usage("--cluster-ca is ID=FILE with the ID of a --cluster, not %.80q", text)
		}
		digest, err := caDigest(path)
		if err != nil {
			return all, err
		}
		one.CASHA256 = append(one.CASHA256, digest)
		all.of[id] = one
	}
	return all, nil
}

// caDigest is the SHA-256 of a CA bundle as node classes and hosts get it: of the file's very bytes.
func caDigest(path string) (string, error) {
	text, err := readPublic("--cluster-ca", path)
	if err != nil {
		return "", err
	}
	if err := onlyCertificates(text); err != nil {
		return "", &failure{
			code: exitUndecided, err: fmt.Errorf("--cluster-ca %s: %v", path, err),
			hint: "kubectl config view --raw --minify --flatten -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}' | base64 -d >ca.crt",
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

// onlyCertificates wants a PEM bundle: the digest of any other file is one that no host ever finds.
func onlyCertificates(text []byte) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("the file is empty")
	}
	for rest := text; len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return errors.New("this is no bundle of certificates in PEM")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("a certificate in it cannot be read: %v", err)
		}
	}
	return nil
}

// id is the cluster that the examples of the output are for.
func (c namedClusters) id() string {
	if len(c.ids) == 0 {
		return trustpolicy.AnyCluster
	}
	return c.ids[0]
}

// yaml writes the clusters in flow style.
func (c namedClusters) yaml() (string, error) {
	if len(c.ids) == 0 {
		return "{" + trustpolicy.AnyCluster + ": {}}", nil
	}
	out, err := json.Marshal(c.of)
	if err != nil {
		return "", usage("--cluster: %v", err)
	}
	return string(out), nil
}

// flag is what commands need that name the cluster.
func (c namedClusters) flag() string {
	if len(c.ids) == 0 {
		return ""
	}
	return " --cluster " + c.id()
}

// scope says which clusters the policy is for.
func (c namedClusters) scope() string {
	if len(c.ids) == 0 {
		return "any cluster (--cluster names some)"
	}
	return strings.Join(c.named, ", ")
}

// hosts says what there is to know before a host is set up from the policy.
func (c namedClusters) hosts() string {
	var b strings.Builder
	for _, id := range c.ids {
		if !c.of[id].pinned() {
			fmt.Fprintf(&b, "        hosts of %[1]s cannot be set up by it: that takes --cluster %[1]s=URL and --cluster-ca %[1]s=FILE\n", id)
		}
	}
	return b.String()
}

// warnOfAnyCluster tells of a policy that no cluster with a name takes.
func (c *cli) warnOfAnyCluster(p *trustpolicy.Policy) {
	if _, anywhere := p.Clusters[trustpolicy.AnyCluster]; anywhere && len(p.Clusters) == 1 && p.Mode(c.now()) == trustpolicy.Enforce {
		c.say("warning", "the policy enforces for any cluster, and one that has a name refuses that (PolicyWrongCluster): name the cluster in clusters, as its anchor does, before the roots sign")
	}
}
