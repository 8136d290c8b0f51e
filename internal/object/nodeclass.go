package object

import (
	"encoding/base64"
	"strconv"
)

// NodeClass is what we read of an SSHNodeClass.
type NodeClass struct {
	Meta
	// Profile is spec.joinProfileRef.name.
	Profile string
	// JoinSecret is spec.joinSecretRef.name, "" where there is none.
	JoinSecret string
	Vars       map[string]string
	// HasCluster says that spec.cluster is there; Endpoint and CABundle are its
	// fields, the latter decoded.
	HasCluster bool
	Endpoint   string
	CABundle   []byte
	// Selector is spec.hostSelector.
	Selector Selector
}

// ParseNodeClass reads an SSHNodeClass from JSON. The error carries Malformed.
func ParseNodeClass(raw []byte) (*NodeClass, error) {
	o, err := parse(raw, KindNodeClass)
	if err != nil {
		return nil, err
	}
	c := &NodeClass{Meta: o.Meta}
	var cluster, selector, profile, secret fields
	err = o.spec.getAll("spec", map[string]any{
		"vars": &c.Vars, "cluster": &cluster, "hostSelector": &selector, "joinProfileRef": &profile, "joinSecretRef": &secret,
	})
	if err != nil {
		return nil, err
	}
	if err := profile.getAll("spec.joinProfileRef", map[string]any{"name": &c.Profile}); err != nil {
		return nil, err
	}
	// check: Malformed: a class without a profile has no limits to hold its vars against
	if c.Profile == "" {
		return nil, malformed("spec.joinProfileRef.name", "is missing").Try("name the SSHJoinProfile")
	}
	if err := secret.getAll("spec.joinSecretRef", map[string]any{"name": &c.JoinSecret}); err != nil {
		return nil, err
	}
	if err := c.cluster(cluster); err != nil {
		return nil, err
	}
	return c, c.Selector.read("spec.hostSelector", selector)
}

func (c *NodeClass) cluster(f fields) error {
	if f == nil {
		return nil
	}
	c.HasCluster = true
	var bundle string
	if err := f.getAll("spec.cluster", map[string]any{"endpoint": &c.Endpoint, "caBundle": &bundle}); err != nil {
		return err
	}
	var err error
	c.CABundle, err = base64.StdEncoding.Strict().DecodeString(bundle)
	// check: Malformed: a bundle that only a lenient reader decodes has a digest that nobody compared
	if err != nil || base64.StdEncoding.EncodeToString(c.CABundle) != bundle {
		return malformed("spec.cluster.caBundle", "is not base64 on one line").Try("base64 -w0 ca.pem")
	}
	return nil
}

// read reads a label selector.
func (s *Selector) read(path string, f fields) error {
	var all []fields
	if err := f.getAll(path, map[string]any{"matchLabels": &s.MatchLabels, "matchExpressions": &all}); err != nil {
		return err
	}
	for i, in := range all {
		var e Expression
		at := path + ".matchExpressions[" + strconv.Itoa(i) + "]"
		if err := in.getAll(at, map[string]any{"key": &e.Key, "operator": &e.Operator, "values": &e.Values}); err != nil {
			return err
		}
		s.Expressions = append(s.Expressions, e)
	}
	return nil
}
