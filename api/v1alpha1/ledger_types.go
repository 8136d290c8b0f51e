package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// LedgerPolicyName is the name of the Ledger that remembers trust policies.
	LedgerPolicyName = "policy"
	// LedgerProfilePrefix, followed by the name of an SSHJoinProfile, names the Ledger that remembers it.
	LedgerProfilePrefix = "profile."
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

// LedgerSpec is one record.
//
// +kubebuilder:validation:XValidation:rule="has(self.policy) != has(self.profile)",message="exactly one of policy and profile is set"
type LedgerSpec struct {
	// policy is set in the Ledger named policy.
	//
	// +optional
	Policy *LedgerPolicy `json:"policy,omitempty"`

	// profile is set in the Ledger of an SSHJoinProfile, named profile.<its name>.
	//
	// +optional
	Profile *LedgerProfile `json:"profile,omitempty"`
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
// +kubebuilder:validation:XValidation:rule="has(self.spec.policy) ? self.metadata.name == 'policy' : self.metadata.name.startsWith('profile.') && size(self.metadata.name) > 8",message="a ledger of policies is named 'policy', one of a profile 'profile.' and the profile's name"
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
