package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// TrustPolicyName is the name of the only TrustPolicy of a cluster.
	TrustPolicyName = "cluster"

	// ConditionInForce says whether the stored policy is the one decisions are made with.
	ConditionInForce = "InForce"
)

// RootLink is one link of the chain of root documents: it names the root keys that follow, and is
// signed by the threshold of its predecessor and by its own.
type RootLink struct {
	// document is the text of the link, signed as these bytes. 65536 is the limit of a statement on
	// hosts, which receive the same bytes.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +required
	Document string `json:"document"`

	// signatures are armored SSH signatures over document, one for each root key, in the namespace
	// hostwarrant-statement. A host reads at most 16 of them.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=16384
	// +listType=atomic
	// +required
	Signatures []string `json:"signatures"`
}

// TrustPolicySpec is a signed policy document. Nothing outside the document steers how it is
// verified: the roots come from the anchor that the cluster's operator installed.
type TrustPolicySpec struct {
	// document is the policy as YAML text, signed as these bytes. At most 524288 characters, the
	// limit of whoever reads it; with signatures and root chain the whole must fit the 1.5 MiB that etcd takes.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=524288
	// +required
	Document string `json:"document"`

	// signatures are armored SSH signatures over document, one for each root key, in the namespace
	// hostwarrant-policy.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=16384
	// +listType=atomic
	// +required
	Signatures []string `json:"signatures"`

	// rootChain leads from the anchor's root keys to those that signed document, link by link. It is
	// absent where the anchor's keys signed it. The anchor may be moved to a later link, so a chain
	// need not grow for ever.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	RootChain []RootLink `json:"rootChain,omitempty"`
}

// TrustPolicyStatus is what was observed about the stored policy.
type TrustPolicyStatus struct {
	// observedGeneration is the generation of spec that the conditions speak of.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are InForce (decisions are made with this policy, or why it was refused), ObjectsVerified
	// (stored objects verify), LedgerIntact (the ledger holds it) and AdmissionInPath (the webhook is asked).
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TrustPolicy carries the root-signed document that says which key may vouch for what.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=tpol,categories=hostwarrant
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="In force",type=string,JSONPath=`.status.conditions[?(@.type=="InForce")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="InForce")].reason`
// +kubebuilder:printcolumn:name="In path",type=string,JSONPath=`.status.conditions[?(@.type=="AdmissionInPath")].status`
// +kubebuilder:printcolumn:name="Objects",type=string,JSONPath=`.status.conditions[?(@.type=="ObjectsVerified")].status`,priority=1
// +kubebuilder:printcolumn:name="Ledger",type=string,JSONPath=`.status.conditions[?(@.type=="LedgerIntact")].status`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'cluster' || self.metadata.name.matches('^hostwarrant-canary-[0-9a-f]{16}$')",message="the one trust policy of a cluster is named 'cluster'; any other would never take effect"
type TrustPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the signed document.
	//
	// +required
	Spec TrustPolicySpec `json:"spec"`

	// status is what was observed.
	//
	// +optional
	Status TrustPolicyStatus `json:"status,omitempty,omitzero"`
}

// TrustPolicyList is a list of TrustPolicy.
//
// +kubebuilder:object:root=true
type TrustPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []TrustPolicy `json:"items"`
}
