package main

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// outline is what is shown of a policy document that nobody verified. Nothing is decided by it.
type outline struct {
	Version         int
	RootVersion     int `yaml:"rootVersion"`
	Issued, Expires string
	Mode            string
	Clusters        map[string]any
	JoinProfiles    struct {
		Signers []struct{ Name, Key string }
	} `yaml:"joinProfiles"`
}

func readOutline(document string) (outline, error) {
	var o outline
	if err := yaml.Unmarshal([]byte(document), &o); err != nil {
		return outline{}, fmt.Errorf("reading the policy document: %v", err)
	}
	return o, nil
}
