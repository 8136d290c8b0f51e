package fragment

import (
	"encoding/json"

	"github.com/hostwarrant/hostwarrant/internal/object"
)

// The kinds that are signed in this format, and their API versions.
const (
	KindContainerProfile = object.KindContainerProfile
	KindRules            = object.KindRules
	// KindRuleBinding and KindSeccompProfile are experimental: their specs are taken as they are written.
	KindRuleBinding    = object.KindRuleBinding
	KindSeccompProfile = object.KindSeccompProfile

	storageAPI = object.GroupStorage + "/v1beta1"
	rulesAPI   = object.GroupKubescape + "/v1"
)

// The labels of the format. Only those in the signed content count.
const (
	prefix       = "signature.kubescape.io/"
	LabelBundle  = prefix + "bundle"
	LabelClass   = prefix + "fragment-class"
	LabelVersion = prefix + "version"
)

// MaxContent bounds the content, and a carrier: it is the format's own limit.
const MaxContent = 8 << 20

// APIVersionOf is the API version of a kind of this format, "" of any other.
func APIVersionOf(kind string) string {
	switch kind {
	case KindContainerProfile, KindSeccompProfile:
		return storageAPI
	case KindRules, KindRuleBinding:
		return rulesAPI
	default:
		return ""
	}
}

// Object is a carrier as it is stored: what it says besides its signed content is display.
type Object struct {
	object.Meta
	Spec json.RawMessage
}

// Fragment is what was signed: everything in it comes from the signed content.
type Fragment struct {
	APIVersion, Kind, Name string
	Labels                 map[string]string
	// Bundle and Class are labels of the content; empty where it has none.
	Bundle, Class string
	// Version is a label too; 0 where the content has none.
	Version int64
	// Signer is "key:" and the SHA-256 of the key's SPKI in hex.
	Signer string
	// Digest is the canonical hash of the content: what is signed. It leaves array order out.
	Digest string
	// Bytes is the SHA-256 of the content as it is written: it tells apart what Digest does not.
	Bytes string
	// Profile is the spec of a ContainerProfile, Rules that of Rules, Other that of the experimental kinds.
	Profile *ProfileSpec
	Rules   *RulesSpec
	Other   json.RawMessage
	// Diverges names the parts of the stored spec that differ from the signed one (SpecPaths; for
	// Rules "rules"), and has UnknownPath where the stored one has fields that its kind has not.
	Diverges []string
}

// UnknownPath stands in Diverges for the stored fields that are no part of the kind.
const UnknownPath = "unknown"
