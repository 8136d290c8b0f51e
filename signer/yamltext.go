package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlOf writes JSON as YAML, in its order. Texts stay in quotes: no reader takes one for a number or a
// truth value.
func yamlOf(text []byte) ([]byte, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("writing YAML: %v", err)
	}
	inBlocks(&n)
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&n); err != nil {
		return nil, fmt.Errorf("writing YAML: %v", err)
	}
	return b.Bytes(), encoder.Close()
}

func inBlocks(n *yaml.Node) {
	if len(n.Content) > 0 {
		n.Style = 0
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && plainWord(child.Value) {
			child.Style = 0
		}
		inBlocks(child)
	}
}

var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9./_-]*$`)

// plainWord tells a key that all readers take for a text without quotes.
func plainWord(s string) bool {
	truths := []string{"y", "yes", "n", "no", "on", "off", "true", "false", "null"}
	return word.MatchString(s) && !slices.Contains(truths, strings.ToLower(s))
}
