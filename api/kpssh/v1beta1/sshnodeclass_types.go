package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProviderIDSource says who chooses a node's provider id.
//
// +kubebuilder:validation:Enum=Static;Adopt
type ProviderIDSource string

// ClusterSpec says which API server nodes join.
type ClusterSpec struct {
	// endpoint is the URL of the API server.
	//
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^https://.+$`
	// +required
	Endpoint string `json:"endpoint"`

	// caBundle is the cluster's CA certificate in PEM, base64-encoded as every byte field.
	//
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	CABundle []byte `json:"caBundle,omitempty"`
}

// PodsReadyGate opens once enough matching pods are ready on the node.
type PodsReadyGate struct {
	// namespace of the pods.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Namespace string `json:"namespace"`

	// selector of the pods; never empty.
	//
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0) || (has(self.matchExpressions) && self.matchExpressions.size() > 0)",message="podsReady.selector must not be empty"
	// +required
	Selector metav1.LabelSelector `json:"selector"`

	// minReady is how many pods must be ready.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:default=1
	// +optional
	MinReady int32 `json:"minReady,omitempty"`
}

// NodeConditionGate opens once the node reports a condition.
type NodeConditionGate struct {
	// type of the condition.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +required
	Type string `json:"type"`

	// status that the condition must have.
	//
	// +kubebuilder:validation:Enum="True";"False";Unknown
	// +kubebuilder:default="True"
	// +optional
	Status corev1.ConditionStatus `json:"status,omitempty"`
}

// StartupTaintCondition is exactly one of its members.
//
// +kubebuilder:validation:XValidation:rule="[has(self.podsReady), has(self.nodeCondition)].filter(x, x).size() == 1",message="removeWhen must set exactly one of podsReady, nodeCondition"
type StartupTaintCondition struct {
	// podsReady waits for pods.
	//
	// +optional
	PodsReady *PodsReadyGate `json:"podsReady,omitempty"`

	// nodeCondition waits for a condition of the node.
	//
	// +optional
	NodeCondition *NodeConditionGate `json:"nodeCondition,omitempty"`
}

// StartupTaintGate says when a startup taint is removed.
type StartupTaintGate struct {
	// taintKey of a startup taint of the node pool.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	// +required
	TaintKey string `json:"taintKey"`

	// removeWhen opens the gate.
	//
	// +required
	RemoveWhen StartupTaintCondition `json:"removeWhen"`
}

// SSHNodeClassSpec says how claims of this class turn hosts into nodes.
type SSHNodeClassSpec struct {
	// hostSelector limits which hosts may be claimed; empty means all of the provider's namespace.
	//
	// +optional
	HostSelector *metav1.LabelSelector `json:"hostSelector,omitempty"`

	// joinProfileRef names the SSHJoinProfile.
	//
	// +kubebuilder:validation:XValidation:rule="self.name != ''",message="joinProfileRef.name must not be empty"
	// +required
	JoinProfileRef corev1.LocalObjectReference `json:"joinProfileRef"`

	// vars reach scripts as KPSSH_VAR_<key>.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z_][A-Za-z0-9_]*$'))",message="vars keys must be valid shell identifiers ([A-Za-z_][A-Za-z0-9_]*)"
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(self[k]) <= 2048)",message="vars values must be at most 2048 characters"
	// +optional
	Vars map[string]string `json:"vars,omitempty"`

	// joinSecretRef names a Secret whose keys reach scripts as KPSSH_SECRET_<KEY>.
	//
	// +kubebuilder:validation:XValidation:rule="self.name != ''",message="joinSecretRef.name must not be empty"
	// +optional
	JoinSecretRef *corev1.LocalObjectReference `json:"joinSecretRef,omitempty"`

	// providerIDSource is Static or Adopt.
	//
	// +kubebuilder:default=Static
	// +optional
	ProviderIDSource ProviderIDSource `json:"providerIDSource,omitempty"`

	// pricePerCPUHour is the modelled price in USD.
	//
	// +kubebuilder:validation:Pattern=`^[0-9]+(\.[0-9]+)?$`
	// +kubebuilder:default="0.02"
	// +optional
	PricePerCPUHour string `json:"pricePerCPUHour,omitempty"`

	// kubeReserved is the modelled overhead of the kubelet.
	//
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu','memory','ephemeral-storage'])",message="kubeReserved keys must be cpu, memory or ephemeral-storage"
	// +optional
	KubeReserved corev1.ResourceList `json:"kubeReserved,omitempty"`

	// maxPods is the modelled number of pods of a node.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`

	// cluster replaces the discovered endpoint and CA.
	//
	// +optional
	Cluster *ClusterSpec `json:"cluster,omitempty"`

	// startupTaintGates say when startup taints are removed.
	//
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(g, self.filter(o, o.taintKey == g.taintKey).size() == 1)",message="startupTaintGates taintKey must be unique"
	// +listType=map
	// +listMapKey=taintKey
	// +optional
	StartupTaintGates []StartupTaintGate `json:"startupTaintGates,omitempty"`
}

// SSHNodeClassStatus is what the provider observed about the class.
type SSHNodeClassStatus struct {
	// conditions holds Ready.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SSHNodeClass is the node class of nodes that live on pool hosts.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=sshnodeclasses,scope=Cluster,shortName=snc,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.spec.joinProfileRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SSHNodeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   SSHNodeClassSpec   `json:"spec,omitempty"`
	Status SSHNodeClassStatus `json:"status,omitempty,omitzero"`
}

// SSHNodeClassList is a list of SSHNodeClass.
//
// +kubebuilder:object:root=true
type SSHNodeClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SSHNodeClass `json:"items"`
}
