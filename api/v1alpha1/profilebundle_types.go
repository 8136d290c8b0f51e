package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The condition types of a ProfileBundle.
const (
	// ConditionAssembled says whether the composite is made of the bundle's members as they stand now.
	// False: its last verified composite is kept, or there is none.
	ConditionAssembled = "Assembled"

	// ConditionPublished says whether the composite is what is stored under the bundle's name.
	ConditionPublished = "Published"

	// ConditionDegraded says whether something needs a person: a composite that is kept though its
	// members changed, one that cannot be published, or members that cannot be read.
	ConditionDegraded = "Degraded"
)

const (
	// MaxBundleMembers is how many members a ProfileBundle shows: with a name of 253 characters and
	// class, signer and digest they take 500 bytes each, of the 1.5 MiB an object may have.
	MaxBundleMembers = 1000
	// MaxBundleFindings is how many refusals, conflicts and divergences it shows of each.
	MaxBundleFindings = 100
)

// BundleMember is a fragment that the composite is made of. All of it was signed.
type BundleMember struct {
	// name of the fragment.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// class of the fragment.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Class string `json:"class"`

	// signer is "key:" and the SHA-256 of the signer's public key.
	//
	// +kubebuilder:validation:MinLength=68
	// +kubebuilder:validation:MaxLength=68
	// +kubebuilder:validation:Pattern=`^key:[0-9a-f]{64}$`
	// +required
	Signer string `json:"signer"`

	// version of the fragment; 0 where it has none.
	//
	// +kubebuilder:validation:Minimum=0
	// +required
	Version int64 `json:"version"`

	// digest is the canonical hash of the fragment's content: what was signed.
	//
	// +required
	Digest HexDigest `json:"digest"`
}

// BundleRefusal is a stored object that carries the bundle's label, or has the name of a member, and
// is no member as it stands.
type BundleRefusal struct {
	// name of the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// reason is one of docs/spec/reasons.md, or Unreadable where the object could not be read.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Reason string `json:"reason"`

	// message says what is wrong.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// member says that the composite is made of this fragment as it was before.
	//
	// +optional
	Member bool `json:"member,omitempty"`
}

// BundleMissing is a member that the trust policy requires, and that is not there.
type BundleMissing struct {
	// name of the fragment.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// class of the fragment.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Class string `json:"class"`
}

// ConflictDecision says what chose between members.
//
// +kubebuilder:validation:Enum=Policy;Order
type ConflictDecision string

// The ways in which a conflict is decided.
const (
	ConflictByPolicy ConflictDecision = "Policy"
	ConflictByOrder  ConflictDecision = "Order"
)

// BundleConflict is one thing that members of equal rank say differently.
type BundleConflict struct {
	// class of the members; where the policy's priority made classes equal, that of the winner.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Class string `json:"class"`

	// path is the part of the spec.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Path string `json:"path"`

	// key is the identifier, rule id or label key that they give different values; empty for a scalar.
	//
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Key string `json:"key,omitempty"`

	// members that contradict each other, as class/name, in the order of assembly; at most 16 of them.
	//
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=317
	// +listType=atomic
	// +optional
	Members []string `json:"members,omitempty"`

	// winner is the member whose value the composite has, unless a stronger class gives one.
	//
	// +kubebuilder:validation:MaxLength=317
	// +optional
	Winner string `json:"winner,omitempty"`

	// decidedBy says whether the trust policy's priority chose the winner, or the order of hashes.
	//
	// +optional
	DecidedBy ConflictDecision `json:"decidedBy,omitempty"`
}

// BundleDivergence is a member whose stored spec is not the signed one. The signed one counts.
type BundleDivergence struct {
	// name of the fragment.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// paths are the parts of the spec that differ.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	// +optional
	Paths []string `json:"paths,omitempty"`
}

// BundleComposite is the profile that was written for agents.
type BundleComposite struct {
	// uid of the ContainerProfile.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	UID string `json:"uid"`

	// digest identifies its spec: after a restart it tells what was written from what somebody changed.
	//
	// +required
	Digest HexDigest `json:"digest"`

	// bytes is the size of its spec as JSON.
	//
	// +kubebuilder:validation:Minimum=0
	// +required
	Bytes int64 `json:"bytes"`
}

// BundleDrift is a foreign change of the composite that was undone.
type BundleDrift struct {
	// time at which it was undone.
	//
	// +required
	Time metav1.Time `json:"time"`

	// milliseconds from when the change was seen until it was undone.
	//
	// +kubebuilder:validation:Minimum=0
	// +required
	Milliseconds int64 `json:"milliseconds"`

	// manager is who made the change, as the API server recorded it; anybody can choose such a name.
	//
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Manager string `json:"manager,omitempty"`
}

// ProfileBundleStatus is what became of the bundle.
type ProfileBundleStatus struct {
	// policyDigest is that of the trust policy by which the bundle was judged.
	//
	// +optional
	PolicyDigest SHA256Digest `json:"policyDigest,omitempty"`

	// merkleRoot is that of the composite's members. Empty: there is no composite.
	//
	// +optional
	MerkleRoot HexDigest `json:"merkleRoot,omitempty"`

	// composite is the profile that was written.
	//
	// +optional
	Composite *BundleComposite `json:"composite,omitempty"`

	// memberCount is how many fragments the composite is made of.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	MemberCount int32 `json:"memberCount"`

	// members are the first thousand of them, in the order of assembly. The manifest has all.
	//
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	// +optional
	Members []BundleMember `json:"members,omitempty"`

	// missing are members that the trust policy requires and that are not there.
	//
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Missing []BundleMissing `json:"missing,omitempty"`

	// refusalCount is how many objects were refused.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	RefusalCount int32 `json:"refusalCount"`

	// refusals are the first hundred of them, those of members before others.
	//
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Refusals []BundleRefusal `json:"refusals,omitempty"`

	// conflictCount is how many conflicts there are between members.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	ConflictCount int32 `json:"conflictCount"`

	// conflicts are the first hundred of them.
	//
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Conflicts []BundleConflict `json:"conflicts,omitempty"`

	// divergenceCount is how many members have another stored spec than the signed one.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	DivergenceCount int32 `json:"divergenceCount"`

	// divergences are the first hundred of them.
	//
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +optional
	Divergences []BundleDivergence `json:"divergences,omitempty"`

	// driftCount is how many foreign changes of the composite were undone.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	DriftCount int64 `json:"driftCount"`

	// lastDrift is the last of them.
	//
	// +optional
	LastDrift *BundleDrift `json:"lastDrift,omitempty"`

	// conditions are Assembled, Published and Degraded.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ProfileBundle shows what became of the signed fragments of one bundle in its namespace. It has the
// bundle's name, is written by hostwarrant-controller alone, and decides nothing.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=pb,categories=hostwarrant
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Members",type=integer,JSONPath=`.status.memberCount`
// +kubebuilder:printcolumn:name="Assembled",type=string,JSONPath=`.status.conditions[?(@.type=="Assembled")].status`
// +kubebuilder:printcolumn:name="Published",type=string,JSONPath=`.status.conditions[?(@.type=="Published")].status`
// +kubebuilder:printcolumn:name="Degraded",type=string,JSONPath=`.status.conditions[?(@.type=="Degraded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Assembled")].reason`
// +kubebuilder:printcolumn:name="Refused",type=integer,JSONPath=`.status.refusalCount`
// +kubebuilder:printcolumn:name="Conflicts",type=integer,JSONPath=`.status.conflictCount`
// +kubebuilder:printcolumn:name="Root",type=string,JSONPath=`.status.merkleRoot`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProfileBundle struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what became of the bundle.
	//
	// +optional
	Status ProfileBundleStatus `json:"status,omitempty,omitzero"`
}

// ProfileBundleList is a list of ProfileBundle.
//
// +kubebuilder:object:root=true
type ProfileBundleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ProfileBundle `json:"items"`
}
