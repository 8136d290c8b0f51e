package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostStatementState is what a host answered to the statements of one kind.
type HostStatementState struct {
	// kind of the statement.
	//
	// +kubebuilder:validation:Enum=roots;signers;revoke;floor;reset
	// +required
	Kind string `json:"kind"`

	// serial is the highest that the host is known to know; 0 is none.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Serial int64 `json:"serial,omitempty"`

	// result is the answer to the last one that was sent (docs/spec/relay.md, Statements).
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Result string `json:"result,omitempty"`

	// sent is the serial of that one.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Sent int64 `json:"sent,omitempty"`
}

// HostMark is the highest serial of a profile that a host has accepted.
type HostMark struct {
	// profile of the mark.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Profile string `json:"profile"`

	// serial of the mark.
	//
	// +kubebuilder:validation:Minimum=0
	// +required
	Serial int64 `json:"serial"`
}

// HostStateStatus is what was last learnt of a host, all of it by the host's own word.
type HostStateStatus struct {
	// observedGeneration is that of the SSHHost when this was learnt.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastContact is when the host last answered.
	//
	// +optional
	LastContact *metav1.Time `json:"lastContact,omitempty"`

	// skewSeconds is how far the host's clock is ahead of the relay's.
	//
	// +optional
	SkewSeconds *int64 `json:"skewSeconds,omitempty"`

	// bootID is the kernel's, which changes with each start of the host.
	//
	// +kubebuilder:validation:MaxLength=36
	// +optional
	BootID string `json:"bootID,omitempty"`

	// statements are the serials per kind.
	//
	// +kubebuilder:validation:MaxItems=5
	// +listType=map
	// +listMapKey=kind
	// +optional
	Statements []HostStatementState `json:"statements,omitempty"`

	// marks are the serials per profile.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=profile
	// +optional
	Marks []HostMark `json:"marks,omitempty"`

	// conditions are Current (the host knows every statement that is for it) and Reachable.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HostState is what the relay learnt of the SSHHost of the same name. Nothing is decided by it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,categories=hostwarrant
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=="Reachable")].status`
// +kubebuilder:printcolumn:name="Current",type=string,JSONPath=`.status.conditions[?(@.type=="Current")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Current")].reason`
// +kubebuilder:printcolumn:name="Contact",type=date,JSONPath=`.status.lastContact`
// +kubebuilder:printcolumn:name="Skew",type=integer,JSONPath=`.status.skewSeconds`,priority=1
type HostState struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what was learnt.
	//
	// +optional
	Status HostStateStatus `json:"status,omitempty,omitzero"`
}

// HostStateList is a list of HostState.
//
// +kubebuilder:object:root=true
type HostStateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HostState `json:"items"`
}
