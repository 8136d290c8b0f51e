package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The condition types of a HostRun.
const (
	// ConditionVerified says whether host, profile and phase passed the checks that are made again
	// before anything leaves the cluster.
	ConditionVerified = "Verified"

	// ConditionDelivered says whether the host was given the run. Unknown is written before the run
	// is sent: from then on only the host can tell whether it happened.
	ConditionDelivered = "Delivered"

	// ConditionSucceeded says how the run ended. True and False are final.
	ConditionSucceeded = "Succeeded"

	// ConditionJoined is the minter's, of a run whose script takes a bootstrap token: whether it gave
	// one, and whether the host's client certificate was approved. True and False are final.
	ConditionJoined = "Joined"
)

// TrailerState says how the output of a run ended.
//
// +kubebuilder:validation:Enum=Whole;Truncated;None
type TrailerState string

// The trailer states.
const (
	// TrailerWhole: count and digest of the output agree with what the host says it sent.
	TrailerWhole TrailerState = "Whole"
	// TrailerTruncated: they agree, and the host says that it discarded what came after.
	TrailerTruncated TrailerState = "Truncated"
	// TrailerNone: nothing vouches for the output.
	TrailerNone TrailerState = "None"
)

// HostRunPhase is a phase of a join profile, or probe, which asks the shim alone and runs no script.
//
// +kubebuilder:validation:Enum=install;join;leave;uninstall;probe
type HostRunPhase string

// The phases.
const (
	HostRunInstall   HostRunPhase = "install"
	HostRunJoin      HostRunPhase = "join"
	HostRunLeave     HostRunPhase = "leave"
	HostRunUninstall HostRunPhase = "uninstall"
	HostRunProbe     HostRunPhase = "probe"
)

// ObjectRef names another object. 253 is the longest name Kubernetes gives an object.
type ObjectRef struct {
	// name of the object.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +required
	Name string `json:"name"`
}

// HostRunSpec says what is to run where. It is immutable but for cancel and the TTL: what was
// judged is what runs.
//
// +kubebuilder:validation:XValidation:rule="self.hostRef == oldSelf.hostRef && self.phase == oldSelf.phase && has(self.profileRef) == has(oldSelf.profileRef) && (!has(self.profileRef) || self.profileRef == oldSelf.profileRef)",message="hostRef, profileRef and phase are immutable: create another HostRun"
// +kubebuilder:validation:XValidation:rule="has(self.secretRef) == has(oldSelf.secretRef) && (!has(self.secretRef) || self.secretRef == oldSelf.secretRef)",message="secretRef is immutable: create another HostRun"
// +kubebuilder:validation:XValidation:rule="has(self.nodeName) == has(oldSelf.nodeName) && (!has(self.nodeName) || self.nodeName == oldSelf.nodeName)",message="nodeName is immutable: create another HostRun"
// +kubebuilder:validation:XValidation:rule="has(self.vars) == has(oldSelf.vars) && (!has(self.vars) || self.vars == oldSelf.vars)",message="vars is immutable: create another HostRun"
// +kubebuilder:validation:XValidation:rule="has(self.deadlineSeconds) == has(oldSelf.deadlineSeconds) && (!has(self.deadlineSeconds) || self.deadlineSeconds == oldSelf.deadlineSeconds)",message="deadlineSeconds is immutable: create another HostRun"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.cancel) || !oldSelf.cancel || (has(self.cancel) && self.cancel)",message="cancel cannot be taken back: create another HostRun"
// +kubebuilder:validation:XValidation:rule="self.phase != 'join' || has(self.nodeName)",message="phase join needs nodeName"
// +kubebuilder:validation:XValidation:rule="self.phase == 'probe' || has(self.profileRef)",message="phases install, join, leave and uninstall need profileRef"
// +kubebuilder:validation:XValidation:rule="self.phase != 'probe' || !(has(self.profileRef) || has(self.nodeName) || has(self.vars) || has(self.secretRef))",message="phase probe runs no script: it takes no profileRef, nodeName, vars or secretRef"
type HostRunSpec struct {
	// hostRef names the SSHHost in the namespace of the HostRun.
	//
	// +required
	HostRef ObjectRef `json:"hostRef"`

	// profileRef names the SSHJoinProfile. All phases need it but probe, which takes none.
	//
	// +optional
	ProfileRef ObjectRef `json:"profileRef,omitempty,omitzero"`

	// phase of the profile to run, or probe.
	//
	// +required
	Phase HostRunPhase `json:"phase"`

	// secretRef names a Secret in the namespace of the HostRun. Its values reach only parameters that
	// the script's warrant declares secret. The key to log in with is not this one: it is the SSHHost's.
	//
	// +optional
	SecretRef *ObjectRef `json:"secretRef,omitempty"`

	// nodeName is the name under which the host joins (KPSSH_NODE_NAME).
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +optional
	NodeName string `json:"nodeName,omitempty"`

	// vars become parameters KPSSH_VAR_<key>. Number and length are those of an SSHNodeClass.
	//
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z_][A-Za-z0-9_]{0,62}$'))",message="a key is a letter or underscore, then letters, digits and underscores, at most 63"
	// +optional
	Vars map[string]HostRunVar `json:"vars,omitempty"`

	// deadlineSeconds bounds the whole run from the creation of the object, all attempts together. A
	// script that was started is not stopped by it: its own time limit does that.
	//
	// +kubebuilder:default=3600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DeadlineSeconds int32 `json:"deadlineSeconds,omitempty"`

	// ttlSecondsAfterFinished deletes the object that long after it finished. Absent: it is kept.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// cancel ends a run that was not yet sent. It never stops a script that was started.
	//
	// +optional
	Cancel bool `json:"cancel,omitempty"`
}

// HostRunVar is the value of one variable: one line.
//
// +kubebuilder:validation:MaxLength=2048
// +kubebuilder:validation:Pattern=`^[^\n\r\x00]*$`
type HostRunVar string

// HostRunStatus is what came of the run. It never holds a secret value.
type HostRunStatus struct {
	// observedGeneration is the generation of spec that the conditions speak of.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Verified, Delivered, Succeeded and, where a token is given, Joined.
	//
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// runID names the run on the host, which never runs the same one twice. All attempts share it.
	//
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{32}$`
	// +kubebuilder:validation:MaxLength=32
	// +optional
	RunID string `json:"runID,omitempty"`

	// attempts counts how often the host was dialled to run the phase.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// shimExitCode is how the shim on the host ended (docs/spec/envelope.md). 0 is a success.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	// +optional
	ShimExitCode *int32 `json:"shimExitCode,omitempty"`

	// scriptExitCode is the exit status of the script itself.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=255
	// +optional
	ScriptExitCode *int32 `json:"scriptExitCode,omitempty"`

	// scriptDigest is sha256:<hex> of the script that was sent.
	//
	// +kubebuilder:validation:Pattern=`^sha256:[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=71
	// +optional
	ScriptDigest string `json:"scriptDigest,omitempty"`

	// serial is that of the script's warrant.
	//
	// +kubebuilder:validation:Minimum=0
	// +optional
	Serial *int64 `json:"serial,omitempty"`

	// trailer says whether the output arrived whole.
	//
	// +optional
	Trailer TrailerState `json:"trailer,omitempty"`

	// transcriptTail is the end of what the script and the shim printed, without secret values.
	//
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	TranscriptTail string `json:"transcriptTail,omitempty"`

	// tokenID is the public half of the run's bootstrap token. The minter writes it, before the token
	// exists.
	//
	// +kubebuilder:validation:Pattern=`^hw[a-z0-9]{4}$`
	// +kubebuilder:validation:MaxLength=6
	// +optional
	TokenID string `json:"tokenID,omitempty"`

	// proof is what the host signed to show that the certificate request is its kubelet's.
	//
	// +optional
	Proof *HostRunProof `json:"proof,omitempty"`

	// hostUID is the UID of the SSHHost that the run was sent to: another object of its name is another host,
	// which is not asked about it and does not get it.
	//
	// +kubebuilder:validation:MaxLength=128
	// +optional
	HostUID string `json:"hostUID,omitempty"`

	// startedAt is when the run was first sent.
	//
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// finishedAt is when Succeeded became final.
	//
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// HostRunProof is a question and its answer (docs/spec/join.md). The minter writes nonce; the relay
// asks the host, and writes text and signature.
type HostRunProof struct {
	// nonce is what the host has to sign beside its facts.
	//
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{64}$`
	// +kubebuilder:validation:MaxLength=64
	// +required
	Nonce string `json:"nonce"`

	// text is what the host signed, docs/spec/shim.md, Proof.
	//
	// +kubebuilder:validation:MaxLength=65536
	// +optional
	Text string `json:"text,omitempty"`

	// signature is the SSHSIG over text by the host's key, armored.
	//
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Signature string `json:"signature,omitempty"`
}

// HostRun is one requested run of one phase of a join profile on one host.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=hr,categories=hostwarrant
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.hostRef.name`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.spec.phase`
// +kubebuilder:printcolumn:name="Profile",type=string,JSONPath=`.spec.profileRef.name`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Shim",type=integer,JSONPath=`.status.shimExitCode`
// +kubebuilder:printcolumn:name="Script",type=integer,JSONPath=`.status.scriptExitCode`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.nodeName`,priority=1
// +kubebuilder:printcolumn:name="Joined",type=string,JSONPath=`.status.conditions[?(@.type=="Joined")].status`,priority=1
// +kubebuilder:printcolumn:name="Join reason",type=string,JSONPath=`.status.conditions[?(@.type=="Joined")].reason`,priority=1
// +kubebuilder:printcolumn:name="Output",type=string,JSONPath=`.status.trailer`,priority=1
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.status.runID`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type HostRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is to run where.
	//
	// +required
	Spec HostRunSpec `json:"spec"`

	// status is what came of it.
	//
	// +optional
	Status HostRunStatus `json:"status,omitempty,omitzero"`
}

// HostRunList is a list of HostRun.
//
// +kubebuilder:object:root=true
type HostRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []HostRun `json:"items"`
}
