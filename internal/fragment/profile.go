package fragment

// ProfileSpec is the spec of a ContainerProfile. Its fields, and those of its parts,
// stand in the order in which the format writes them: the bytes that are signed
// beside depend on it.
type ProfileSpec struct {
	Architectures        []string              `json:"architectures"`
	Capabilities         []string              `json:"capabilities"`
	Execs                []Exec                `json:"execs"`
	Opens                []Open                `json:"opens"`
	Syscalls             []string              `json:"syscalls"`
	SeccompProfile       Seccomp               `json:"seccompProfile"`
	Endpoints            []Endpoint            `json:"endpoints"`
	ImageID              string                `json:"imageID"`
	ImageTag             string                `json:"imageTag"`
	RulePolicies         map[string]RulePolicy `json:"rulePolicies"`
	IdentifiedCallStacks []CallStack           `json:"identifiedCallStacks"`
	LabelSelector
	Ingress []Neighbor `json:"ingress"`
	Egress  []Neighbor `json:"egress"`
}

// Exec is a program that may run.
type Exec struct {
	Path       string   `json:"path,omitempty"`
	Args       []string `json:"args,omitempty"`
	Envs       []string `json:"envs,omitempty"`
	ParentPath string   `json:"parentPath,omitempty"`
}

// Open is a file that may be opened, and how.
type Open struct {
	Path  string   `json:"path"`
	Flags []string `json:"flags"`
}

// Seccomp is a seccomp profile.
type Seccomp struct {
	Name string      `json:"name,omitempty"`
	Path string      `json:"path,omitempty"`
	Spec SeccompSpec `json:"spec"`
}

// SeccompSpec is the body of a seccomp profile.
type SeccompSpec struct {
	Disabled         bool             `json:"disabled,omitempty"`
	BaseProfileName  string           `json:"baseProfileName,omitempty"`
	DefaultAction    string           `json:"defaultAction"`
	Architectures    []string         `json:"architectures,omitempty"`
	ListenerPath     string           `json:"listenerPath,omitempty"`
	ListenerMetadata string           `json:"listenerMetadata,omitempty"`
	Syscalls         []SeccompSyscall `json:"syscalls,omitempty"`
	Flags            []string         `json:"flags,omitempty"`
}

// SeccompSyscall says what becomes of some system calls.
type SeccompSyscall struct {
	Names    []string     `json:"names"`
	Action   string       `json:"action"`
	ErrnoRet uint64       `json:"errnoRet,omitempty"`
	Args     []SeccompArg `json:"args,omitempty"`
}

// SeccompArg is a condition on an argument of a system call.
type SeccompArg struct {
	Index    uint64 `json:"index"`
	Value    uint64 `json:"value,omitempty"`
	ValueTwo uint64 `json:"valueTwo,omitempty"`
	Op       string `json:"op"`
}

// Endpoint is an HTTP endpoint that may be called or served.
type Endpoint struct {
	Endpoint  string   `json:"endpoint,omitempty"`
	Methods   []string `json:"methods,omitempty"`
	Internal  bool     `json:"internal"`
	Direction string   `json:"direction,omitempty"`
	Headers   Free     `json:"headers,omitempty"`
}

// RulePolicy excuses a container, or processes of it, from a rule.
type RulePolicy struct {
	ProcessAllowed   []string `json:"processAllowed,omitempty"`
	ContainerAllowed bool     `json:"containerAllowed,omitempty"`
}

// CallStack is a call stack that was identified.
type CallStack struct {
	CallID    string   `json:"callID"`
	CallStack CallTree `json:"callStack"`
}

// CallTree is the tree of a call stack.
type CallTree struct {
	Root CallNode `json:"root"`
}

// CallNode is a node of a CallTree.
type CallNode struct {
	Children []CallNode `json:"children"`
	Frame    CallFrame  `json:"frame"`
}

// CallFrame is a place in the code.
type CallFrame struct {
	FileID    string `json:"fileID"`
	Lineno    string `json:"lineno"`
	FrameType int    `json:"frameType"`
}

// LabelSelector selects pods, as Kubernetes does.
type LabelSelector struct {
	MatchLabels      map[string]string `json:"matchLabels,omitempty"`
	MatchExpressions []Requirement     `json:"matchExpressions,omitempty"`
}

// Requirement is one expression of a LabelSelector.
type Requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values,omitempty"`
}

// Neighbor is a peer on the network.
type Neighbor struct {
	Identifier        string         `json:"identifier"`
	Type              string         `json:"type"`
	DNS               string         `json:"dns"`
	DNSNames          []string       `json:"dnsNames"`
	Ports             []Port         `json:"ports"`
	PodSelector       *LabelSelector `json:"podSelector"`
	NamespaceSelector *LabelSelector `json:"namespaceSelector"`
	IPAddress         string         `json:"ipAddress"`
}

// Port is a port of a Neighbor; a nil number is any.
type Port struct {
	Name     string `json:"name"`
	Protocol string `json:"protocol"`
	Port     *int32 `json:"port"`
}
