package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/internal/fragment/configfile"
	"github.com/hostwarrant/hostwarrant/internal/fragment/signature"
	"github.com/hostwarrant/hostwarrant/signer/manifest"
)

// kindConfig is how a signed configuration is named, which is no object of a cluster.
const kindConfig = "Configuration"

// isConfigFile tells kubescape's signed configuration, {"config": …}, signed or not yet.
func isConfigFile(data []byte) bool {
	var f struct{ Kind, Config json.RawMessage }
	return json.Unmarshal(data, &f) == nil && f.Config != nil && f.Kind == nil
}

// config signs a configuration. Experimental: no published one was ever seen.
func (s *signing) config(path string, data []byte) ([]byte, error) {
	if flag := s.fragment.flag + s.scriptFlag; flag != "" {
		return nil, usage("--%s is not for a configuration, which %s is", flag, path)
	}
	key, err := s.fragmentKey()
	if err != nil {
		return nil, err
	}
	text, err := signedConfig(data, key)
	if err != nil {
		return nil, refused(path, err)
	}
	s.advise("%s: signing a configuration is experimental", path)
	return text, nil
}

func signedConfig(data []byte, key *fragmentKey) ([]byte, error) {
	c, err := configfile.Parse(data)
	if err != nil {
		return nil, err
	}
	digest, err := fragment.Digest(c.Config)
	if err != nil {
		return nil, err
	}
	signed, err := key.sign(digest)
	if err != nil {
		return nil, err
	}
	text, err := withAnnotations(data, signature.Annotations(key.certificate, signed, key.at))
	if err != nil {
		return nil, badStyle(err)
	}
	again, err := configfile.Parse(text)
	if err != nil {
		return nil, err
	}
	return text, again.Verify(key.signer.public)
}

// withAnnotations writes annotations into a configuration, and takes out embedded content, which none may have.
func withAnnotations(data []byte, annotations map[string]string) ([]byte, error) {
	f, err := manifest.Read(data)
	if err != nil {
		return nil, err
	}
	var all []manifest.Value
	for _, name := range sortedKeys(annotations) {
		all = append(all, manifest.Value{Path: []string{"annotations", name}, Text: annotations[name]})
	}
	if f, err = f.SetAll(all); err != nil {
		return nil, err
	}
	f, err = f.DropKey(0, "annotations", signature.AnnotationContent)
	if err != nil {
		return nil, err
	}
	return f.Data, nil
}

// config judges a configuration: whether the root signed it.
func (j *judge) config(in input) verdict {
	name := filepath.Base(in.path)
	v := verdict{Path: in.path, Decision: decision.Admit(kindConfig, name, "signed by the root (experimental)")}
	if err := j.configSigned(in.data); err != nil {
		v.Decision = decision.From(err).Denied(kindConfig, name)
	}
	return v
}

func (j *judge) configSigned(data []byte) error {
	c, err := configfile.Parse(data)
	if err != nil {
		return err
	}
	root, err := onlyRoot(j.anchor)
	if err != nil {
		return decision.Errorf(decision.SignerUnknown, "a configuration is signed by the one root of kubescape's format: --root %v", err)
	}
	return c.Verify(root)
}

// signText signs what a file holds.
func (s *signing) signText(path string, data []byte) ([]byte, error) {
	if isConfigFile(data) {
		return s.config(path, data)
	}
	if isPolicyFile(data) {
		return nil, undecided(fmt.Errorf("%s is a trust policy of kubescape's reference: hostwarrant policy export signs one", path))
	}
	return s.file(path, data)
}
