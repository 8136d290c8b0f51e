package trustpolicy

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

var decimalNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

// strict refuses, anywhere in the document, what says something other than its
// own text, or what two readers of YAML take for two values.
func strict(n *yaml.Node) error {
	// check: PolicyMalformed: people must see in one place what a field says; aliases and merges move it elsewhere
	if n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 || n.Tag == "!!merge" {
		return malformed("line %d: anchors, aliases, merges and tags are not allowed", n.Line)
	}
	// check: PolicyMalformed: "profiles:" with nothing behind it would be read as absent, which means every profile
	if n.Tag == "!!null" {
		return malformed("line %d: a field without a value; give it one, or leave the field out", n.Line)
	}
	// check: PolicyMalformed: an empty text would be read as absent, which means no limit: no end, every name
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && n.Value == "" {
		return malformed("line %d: an empty text; give a value, or leave the field out", n.Line)
	}
	// check: PolicyMalformed: 010 is eight or ten, 3.7 would be cut to 3, and a bare date is no text everywhere
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!int" && !decimalNumber.MatchString(n.Value) || n.Tag == "!!float" || n.Tag == "!!timestamp") {
		return malformed("line %d: %.40q is not a plain decimal number; quote it if it is a text", n.Line, n.Value)
	}
	// check: PolicyMalformed: yes and off are texts to some readers and booleans to others
	if n.Kind == yaml.ScalarNode && n.Style == 0 && isOldBoolean(n.Value) {
		return malformed("line %d: write true or false, or quote %q", n.Line, n.Value)
	}
	for _, child := range n.Content {
		if err := strict(child); err != nil {
			return err
		}
	}
	return nil
}

// isOldBoolean tells the words that are booleans in YAML 1.1 alone, and the spellings
// of true and false that JSON does not have.
func isOldBoolean(word string) bool {
	if word == "true" || word == "false" {
		return false
	}
	return slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false"}, strings.ToLower(word))
}
