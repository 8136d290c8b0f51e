package trustpolicy

import (
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
)

// AnyCluster must be written out: a policy for every cluster can be replayed in every cluster.
const AnyCluster = "any"

var uid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Cluster is what the policy knows of one cluster.
type Cluster struct {
	// Endpoints are API server URLs, and CASHA256 hex digests of its decoded CA bundle.
	Endpoints []string `yaml:"endpoints"`
	CASHA256  []string `yaml:"caSHA256"`
	// UID is that of the namespace kube-system, or "".
	UID string `yaml:"uid"`
}

func (d *document) clusters(p *Policy) error {
	p.Clusters = d.Clusters
	// check: PolicyMalformed: no cluster must not mean every cluster
	if len(d.Clusters) == 0 {
		return malformed("clusters is empty; name the clusters, or say {any: {}}")
	}
	for id, c := range d.Clusters {
		// check: PolicyMalformed: a cluster id is compared byte for byte everywhere
		if !ValidClusterID(id) {
			return malformed("clusters: %.80q is not a cluster id ([a-z0-9-], up to 63)", id)
		}
		if err := c.check("clusters." + id); err != nil {
			return err
		}
	}
	return nil
}

func (c Cluster) check(at string) error {
	for _, digest := range c.CASHA256 {
		raw, err := hex.DecodeString(digest)
		// check: PolicyMalformed: a digest in another form would never match, or match by chance of case
		if err != nil || len(raw) != 32 || digest != strings.ToLower(digest) {
			return malformed("%s.caSHA256: %.70q is not 64 lower-case hex digits", at, digest)
		}
	}
	// check: PolicyMalformed: a host must not be sent to an API server over plain text
	if i := slices.IndexFunc(c.Endpoints, func(e string) bool { return !strings.HasPrefix(e, "https://") }); i >= 0 {
		return malformed("%s.endpoints: %.80q does not start with https://", at, c.Endpoints[i])
	}
	// check: PolicyMalformed: a UID in another form would never match
	if c.UID != "" && !uid.MatchString(c.UID) {
		return malformed("%s.uid: %.80q is not the UID of a namespace", at, c.UID)
	}
	return nil
}

// Cluster is what the policy knows of the cluster with this id: what it says under
// that name, or under "any" where it does not name it.
func (p *Policy) Cluster(id string) Cluster {
	if c, named := p.Clusters[id]; named {
		return c
	}
	return p.Clusters[AnyCluster]
}
