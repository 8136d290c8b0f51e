// Package manifest reads YAML and JSON files of Kubernetes objects and edits signatures in them.
//
// Reading gives a tree whose nodes know their place in the text, so that an edit replaces only the
// bytes of a signature: comments, order, quoting and line ends of everything else stay as they were.
//
// It does not judge objects and knows no field but those that tell what an object is (apiVersion,
// kind, metadata.name, items). What a guarded object may hold is decided by the trust core.
//
// The threat it stops: two readers that see two different objects in one text. What kubectl and the
// API server could read in more than one way (duplicate keys, aliases, anchors, merge keys, explicit
// tags, text after a document marker) is an error here, with its line, and is never resolved quietly.
//
// Formats: YAML 1.2 as go.yaml.in/yaml/v3 reads it, with the YAML 1.1 words for true and false that
// kubectl still knows; JSON as in RFC 8259.
package manifest
