package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HostStatementSpec is a root statement as it is sent to hosts (docs/spec/statement.md).
type HostStatementSpec struct {
	// statement is the text that the roots signed, byte for byte.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +required
	Statement string `json:"statement"`

	// signatures are armored SSHSIG signatures, each by another root key.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=16384
	// +listType=atomic
	// +required
	Signatures []string `json:"signatures"`
}

// HostStatementStatus counts the hosts that the relay knows.
type HostStatementStatus struct {
	// observedGeneration is the generation of spec that the status speaks of.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Verified (the relay's own judgement) and Delivered (every host knows it).
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// kind of the statement.
	//
	// +kubebuilder:validation:Enum=roots;signers;revoke;floor;reset
	// +optional
	Kind string `json:"kind,omitempty"`

	// serial of the statement within its kind.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Serial *int64 `json:"serial,omitempty"`

	// hosts is how many Verified SSHHosts it is for.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Hosts int32 `json:"hosts,omitempty"`

	// applied is how many of them know it, or a later one.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Applied int32 `json:"applied,omitempty"`

	// refused is how many of them refused it.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Refused int32 `json:"refused,omitempty"`
}

// HostStatement is a root statement that the relay takes to every Verified SSHHost that it is for.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=hst,categories=hostwarrant
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.status.kind`
// +kubebuilder:printcolumn:name="Serial",type=integer,JSONPath=`.status.serial`
// +kubebuilder:printcolumn:name="Hosts",type=integer,JSONPath=`.status.hosts`
// +kubebuilder:printcolumn:name="Applied",type=integer,JSONPath=`.status.applied`
// +kubebuilder:printcolumn:name="Refused",type=integer,JSONPath=`.status.refused`
// +kubebuilder:printcolumn:name="Verified",type=string,JSONPath=`.status.conditions[?(@.type=="Verified")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Verified")].reason`,priority=1
// +kubebuilder:printcolumn:name="Delivered",type=string,JSONPath=`.status.conditions[?(@.type=="Delivered")].status`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.conditions[?(@.type=="Delivered")].lastTransitionTime`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HostStatement struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the statement.
	//
	// +required
	Spec HostStatementSpec `json:"spec"`

	// status is where it arrived.
	//
	// +optional
	Status HostStatementStatus `json:"status,omitempty,omitzero"`
}

// HostStatementList is a list of HostStatement.
//
// +kubebuilder:object:root=true
type HostStatementList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HostStatement `json:"items"`
}
