package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// LedgerPolicyName is the name of the Ledger that remembers trust policies.
	LedgerPolicyName = "policy"
	// LedgerProfilePrefix, followed by the name of an SSHJoinProfile, names the Ledger that remembers it.
	LedgerProfilePrefix = "profile."
	// LedgerSlotsPrefix begins the names of the Ledgers that remember fragments (internal/ledger.SlotsName).
	LedgerSlotsPrefix = "slots."
)

// SHA256Digest is "sha256:" and 64 lower-case hex digits.
//
// +kubebuilder:validation:MaxLength=71
// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
type SHA256Digest string

// ResetID names a reset of a trust policy. 512 holds a name, a serial and a digest.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=512
type ResetID string

// LedgerPolicy is what is remembered of the anchor and of trust policies.
type LedgerPolicy struct {
	// roots is the anchor's roots file as of the first start. 65536 is the limit of that file.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +required
	Roots string `json:"roots"`

	// anchorDigest is the digest of roots.
	//
	// +required
	AnchorDigest SHA256Digest `json:"anchorDigest"`

	// rootVersion is the version of the newest root keys that a policy in force was signed by.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	// +required
	RootVersion int32 `json:"rootVersion"`

	// rootDigest is the digest of the root document that names those keys. Absent where they are a plain
	// list of the anchor.
	//
	// +optional
	RootDigest SHA256Digest `json:"rootDigest,omitempty"`

	// version of the newest policy that was in force.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=999999999999999
	// +required
	Version int64 `json:"version"`

	// digest of that policy's document.
	//
	// +required
	Digest SHA256Digest `json:"digest"`

	// resetsUsed are the resets that were applied: each lowers a mark once.
	//
	// +kubebuilder:validation:MaxItems=512
	// +listType=set
	// +optional
	ResetsUsed []ResetID `json:"resetsUsed,omitempty"`

	// renderedSigners are digests of lists that were filled into SSHHost.spec.trustedSigners from
	// policies, oldest first: a list that has one of them is ours to refresh.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	RenderedSigners []SHA256Digest `json:"renderedSigners,omitempty"`
}

// LedgerProfile is the highest version of an SSHJoinProfile that was seen stored and verified.
type LedgerProfile struct {
	// serial is that of its warrants.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999999
	// +required
	Serial int64 `json:"serial"`

	// digest is that of its scripts.
	//
	// +required
	Digest SHA256Digest `json:"digest"`

	// reset is the last reset that lowered serial. A write that lowers serial names one that was not used.
	//
	// +optional
	Reset ResetID `json:"reset,omitempty"`
}

// HexDigest is 64 lower-case hex digits.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
type HexDigest string

// LedgerSlotMark is the highest version of a fragment that was seen stored and verified.
type LedgerSlotMark struct {
	// version is that of the signed content; 0 where it says none.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=999999999999999
	// +required
	Version int64 `json:"version"`

	// digest is the canonical hash of that content: what was signed.
	//
	// +required
	Digest HexDigest `json:"digest"`

	// bytes is the SHA-256 of the content as it was seen first under that digest, which leaves the order
	// of lists out.
	//
	// +required
	Bytes HexDigest `json:"bytes"`

	// reset is the last reset that lowered version. A write that lowers version names one that was not used.
	//
	// +optional
	Reset ResetID `json:"reset,omitempty"`
}

// LedgerSlots is what is remembered of the fragments of one bundle in one namespace.
type LedgerSlots struct {
	// namespace is that of the fragments; absent for Rules and bindings, which take effect everywhere.
	//
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// bundle is that of the fragments; absent for those that name none.
	//
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Bundle string `json:"bundle,omitempty"`

	// marks by class and name, with a slash between them. The class of Rules begins with "rules/", that
	// of a RuntimeRuleAlertBinding with "bindings/", that of a SeccompProfile with "seccomp/". A map, so
	// that a guard written in CEL compares old and new in one pass.
	//
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=2000
	// +required
	Marks map[string]LedgerSlotMark `json:"marks"`
}

// LedgerSpec is one record.
//
// +kubebuilder:validation:XValidation:rule="[has(self.policy), has(self.profile), has(self.slots)].filter(one, one).size() == 1",message="exactly one of policy, profile and slots is set"
type LedgerSpec struct {
	// policy is set in the Ledger named policy.
	//
	// +optional
	Policy *LedgerPolicy `json:"policy,omitempty"`

	// profile is set in the Ledger of an SSHJoinProfile, named profile.<its name>.
	//
	// +optional
	Profile *LedgerProfile `json:"profile,omitempty"`

	// slots is set in a Ledger of fragments, named slots.<hash of namespace and bundle>.<number>.
	//
	// +optional
	Slots *LedgerSlots `json:"slots,omitempty"`
}

// Ledger is what a cluster remembers of one thing, so that what is older cannot come back. It is
// written by hostwarrant-controller alone and outlives the product.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=hostwarrant
// +kubebuilder:printcolumn:name="Serial",type=integer,JSONPath=`.spec.profile.serial`
// +kubebuilder:printcolumn:name="Policy version",type=integer,JSONPath=`.spec.policy.version`
// +kubebuilder:printcolumn:name="Root version",type=integer,JSONPath=`.spec.policy.rootVersion`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="has(self.spec.policy) ? self.metadata.name == 'policy' : has(self.spec.slots) ? self.metadata.name.matches('^slots[.][0-9a-f]{32}[.](0|[1-9][0-9]{0,4})$') : self.metadata.name.startsWith('profile.') && size(self.metadata.name) > 8",message="a ledger of policies is named 'policy', one of a profile 'profile.' and the profile's name, one of fragments 'slots.', 32 hex digits, '.' and a number"
type Ledger struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the record.
	//
	// +required
	Spec LedgerSpec `json:"spec"`
}

// LedgerList is a list of Ledger.
//
// +kubebuilder:object:root=true
type LedgerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Ledger `json:"items"`
}
