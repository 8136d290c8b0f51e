package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProfileScripts holds one script for each phase of a host's life.
type ProfileScripts struct {
	// install prepares a blank host; it runs once for each profile version.
	//
	// +kubebuilder:validation:MaxLength=262144
	// +required
	Install string `json:"install"`

	// join makes the host a node of the cluster.
	//
	// +kubebuilder:validation:MaxLength=262144
	// +required
	Join string `json:"join"`

	// leave takes the node out of the cluster and keeps what install put there.
	//
	// +kubebuilder:validation:MaxLength=262144
	// +required
	Leave string `json:"leave"`

	// uninstall removes everything; the provider never runs it by itself.
	//
	// +kubebuilder:validation:MaxLength=262144
	// +optional
	Uninstall string `json:"uninstall,omitempty"`
}

// ProfileSignatures holds the signatures over the scripts, phase by phase.
type ProfileSignatures struct {
	// install is over the bytes of scripts.install.
	//
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Install string `json:"install,omitempty"`

	// join is over the bytes of scripts.join.
	//
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Join string `json:"join,omitempty"`

	// leave is over the bytes of scripts.leave.
	//
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Leave string `json:"leave,omitempty"`

	// uninstall is over the bytes of scripts.uninstall.
	//
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Uninstall string `json:"uninstall,omitempty"`
}

// ProfileTimeouts bounds how long a phase may run.
type ProfileTimeouts struct {
	// install bounds the install phase; ten minutes where absent.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	Install *metav1.Duration `json:"install,omitempty"`

	// join bounds the join phase; five minutes where absent.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	Join *metav1.Duration `json:"join,omitempty"`

	// leave bounds the leave phase; three minutes where absent.
	//
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	Leave *metav1.Duration `json:"leave,omitempty"`
}

// SSHJoinProfileSpec is a versioned way of joining a host.
type SSHJoinProfileSpec struct {
	// version names the content; a new value makes the provider run install again.
	//
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]{1,63}$`
	// +kubebuilder:default="1"
	// +optional
	Version string `json:"version,omitempty"`

	// scripts are run as root on hosts.
	//
	// +required
	Scripts ProfileScripts `json:"scripts"`

	// signatures are armored SSH signatures in the namespace kpssh.
	//
	// +optional
	Signatures *ProfileSignatures `json:"signatures,omitempty"`

	// timeouts replaces the built-in bounds of the phases.
	//
	// +optional
	Timeouts *ProfileTimeouts `json:"timeouts,omitempty"`
}

// SSHJoinProfile is a named set of scripts that bring a host into the cluster and out of it again.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=sjp,categories=karpenter
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type SSHJoinProfile struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec SSHJoinProfileSpec `json:"spec,omitempty"`
}

// SSHJoinProfileList is a list of SSHJoinProfile.
//
// +kubebuilder:object:root=true
type SSHJoinProfileList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []SSHJoinProfile `json:"items"`
}
