package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExecMode says how scripts reach a host.
//
// +kubebuilder:validation:Enum=Raw;Verified
type ExecMode string

const (
	// ExecModeRaw pipes scripts into a root shell without any check.
	ExecModeRaw ExecMode = "Raw"
	// ExecModeVerified hands signed scripts to the host's shim.
	ExecModeVerified ExecMode = "Verified"
)

// HostState is where a host stands in its life.
//
// +kubebuilder:validation:Enum=Pending;Available;Claimed;InUse;Unhealthy;Leaving;Maintenance
type HostState string

// SSHHostSpec describes an existing machine that can be reached over SSH.
//
// +kubebuilder:validation:XValidation:rule="!has(self.execMode) || self.execMode != 'Verified' || (has(self.trustedSigners) && size(self.trustedSigners) > 0)",message="execMode Verified requires at least one trustedSigners entry"
type SSHHostSpec struct {
	// address is the IP or DNS name to connect to. It is the identity of the host and never changes.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="address is immutable — delete and recreate the SSHHost to re-address a host"
	// +required
	Address string `json:"address"`

	// port is the SSH port.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +kubebuilder:default=22
	// +optional
	Port int32 `json:"port,omitempty"`

	// user is the login name.
	//
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:default=root
	// +optional
	User string `json:"user,omitempty"`

	// sshKeySecretRef names a Secret of the same namespace with the login key (privateKey) and, as
	// the product demands, the pinned host key (knownHost).
	//
	// +kubebuilder:validation:XValidation:rule="self.name != ''",message="sshKeySecretRef.name must not be empty"
	// +required
	SSHKeySecretRef corev1.LocalObjectReference `json:"sshKeySecretRef"`

	// nodeAddress is the IP that the node announces in the cluster, where it is not address.
	//
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="nodeAddress must be an IP literal (kubelet --node-ip does not accept names)"
	// +optional
	NodeAddress string `json:"nodeAddress,omitempty"`

	// capacity is what the host offers once joined: cpu and memory at least.
	//
	// +kubebuilder:validation:XValidation:rule="'cpu' in self && 'memory' in self",message="capacity must declare at least cpu and memory"
	// +required
	Capacity corev1.ResourceList `json:"capacity"`

	// execMode is Raw or Verified. The API server fills in Raw before any webhook sees the object.
	//
	// +kubebuilder:default=Raw
	// +optional
	ExecMode ExecMode `json:"execMode,omitempty"`

	// trustedSigners are OpenSSH public key lines whose signatures the provider accepts.
	//
	// +kubebuilder:validation:MaxItems=16
	// +optional
	TrustedSigners []string `json:"trustedSigners,omitempty"`

	// shimCommand is the command sent over SSH in Verified mode; /opt/kpssh/kpssh-shim where absent.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	ShimCommand string `json:"shimCommand,omitempty"`
}

// ClaimRef names the NodeClaim that holds a host.
type ClaimRef struct {
	// name of the NodeClaim.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// uid of the NodeClaim when the host was claimed.
	//
	// +optional
	UID string `json:"uid,omitempty"`
}

// SSHHostStatus is what the provider observed about the host.
type SSHHostStatus struct {
	// state is where the host stands in its life.
	//
	// +optional
	State HostState `json:"state,omitempty"`

	// claimRef is set while a NodeClaim holds the host.
	//
	// +optional
	ClaimRef *ClaimRef `json:"claimRef,omitempty"`

	// installedProfile is "<profile>@<version>" after an install succeeded.
	//
	// +optional
	InstalledProfile string `json:"installedProfile,omitempty"`

	// bootstrapTokenID is the id of the token of the join under way.
	//
	// +kubebuilder:validation:MaxLength=6
	// +optional
	BootstrapTokenID string `json:"bootstrapTokenID,omitempty"`

	// providerID of the node that runs on this host.
	//
	// +optional
	ProviderID string `json:"providerID,omitempty"`

	// hostKeyFingerprint is the host key seen first, or the one given.
	//
	// +optional
	HostKeyFingerprint string `json:"hostKeyFingerprint,omitempty"`

	// observedCapacity is what the probe found.
	//
	// +optional
	ObservedCapacity corev1.ResourceList `json:"observedCapacity,omitempty"`

	// observedArch is amd64 or arm64, as probed.
	//
	// +optional
	ObservedArch string `json:"observedArch,omitempty"`

	// observedGeneration is the generation of spec that the probe last acted on.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastProbeTime is when the probe last ran.
	//
	// +optional
	LastProbeTime *metav1.Time `json:"lastProbeTime,omitempty"`

	// lastProbeError is empty while the host is well.
	//
	// +optional
	LastProbeError string `json:"lastProbeError,omitempty"`

	// conditions holds Ready.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SSHHost is an entry of the pool: an existing machine that can become a node.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=sshh,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Address",type=string,JSONPath=`.spec.address`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.metadata.labels['karpenter\.dklesev\.github\.io/host-class']`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.status.claimRef.name`
// +kubebuilder:printcolumn:name="Installed",type=string,JSONPath=`.status.installedProfile`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SSHHost struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SSHHostSpec   `json:"spec,omitempty"`
	Status SSHHostStatus `json:"status,omitempty,omitzero"`
}

// SSHHostList is a list of SSHHost.
//
// +kubebuilder:object:root=true
type SSHHostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SSHHost `json:"items"`
}
