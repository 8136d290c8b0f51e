package decision

// Reason names why, from a closed set: metrics, tests and runbooks key on it.
type Reason string

// The Reasons. Each has its meaning and remedy in docs/spec/reasons.md.
const (
	Verified            Reason = "Verified"
	Unsigned            Reason = "Unsigned"
	SignatureInvalid    Reason = "SignatureInvalid"
	SignatureMalformed  Reason = "SignatureMalformed"
	WrongNamespace      Reason = "WrongNamespace"
	SignerUnknown       Reason = "SignerUnknown"
	SignerRevoked       Reason = "SignerRevoked"
	SignerScope         Reason = "SignerScope"
	KeyTypeRefused      Reason = "KeyTypeRefused"
	TouchMissing        Reason = "TouchMissing"
	ThresholdNotMet     Reason = "ThresholdNotMet"
	BytesChanged        Reason = "BytesChanged"
	NewlineChanged      Reason = "NewlineChanged"
	TemplateFound       Reason = "TemplateFound"
	WarrantMissing      Reason = "WarrantMissing"
	WarrantMalformed    Reason = "WarrantMalformed"
	WarrantMismatch     Reason = "WarrantMismatch"
	TargetRefused       Reason = "TargetRefused"
	NotYetValid         Reason = "NotYetValid"
	Expired             Reason = "Expired"
	ValidityTooLong     Reason = "ValidityTooLong"
	SerialRollback      Reason = "SerialRollback"
	SerialReused        Reason = "SerialReused"
	SerialJump          Reason = "SerialJump"
	LedgerPending       Reason = "LedgerPending"
	ParamUndeclared     Reason = "ParamUndeclared"
	ParamInvalid        Reason = "ParamInvalid"
	ClusterUnpinned     Reason = "ClusterUnpinned"
	RawRefused          Reason = "RawRefused"
	ModeDowngrade       Reason = "ModeDowngrade"
	ShimCommandRefused  Reason = "ShimCommandRefused"
	UserRefused         Reason = "UserRefused"
	PortRefused         Reason = "PortRefused"
	HostClassRefused    Reason = "HostClassRefused"
	ProfileRefused      Reason = "ProfileRefused"
	NamespaceRefused    Reason = "NamespaceRefused"
	NodeNameRefused     Reason = "NodeNameRefused"
	NodeNameTaken       Reason = "NodeNameTaken"
	ClusterRefused      Reason = "ClusterRefused"
	HostKeyNotPinned    Reason = "HostKeyNotPinned"
	SignersNotInPolicy  Reason = "SignersNotInPolicy"
	InUse               Reason = "InUse"
	PolicyUnavailable   Reason = "PolicyUnavailable"
	PolicyExpired       Reason = "PolicyExpired"
	PolicyUnsigned      Reason = "PolicyUnsigned"
	PolicyRollback      Reason = "PolicyRollback"
	PolicyEquivocation  Reason = "PolicyEquivocation"
	PolicyMalformed     Reason = "PolicyMalformed"
	PolicyWrongCluster  Reason = "PolicyWrongCluster"
	RootFork            Reason = "RootFork"
	AnchorChanged       Reason = "AnchorChanged"
	DemoRoot            Reason = "DemoRoot"
	StatementRejected   Reason = "StatementRejected"
	ClassUnknown        Reason = "ClassUnknown"
	PathRefused         Reason = "PathRefused"
	ValueRefused        Reason = "ValueRefused"
	RuleRefused         Reason = "RuleRefused"
	Tampered            Reason = "Tampered"
	NotCanonical        Reason = "NotCanonical"
	KindMismatch        Reason = "KindMismatch"
	VersionRollback     Reason = "VersionRollback"
	VersionEquivocated  Reason = "VersionEquivocated"
	MemberMissing       Reason = "MemberMissing"
	CompositeForeign    Reason = "CompositeForeign"
	Unguarded           Reason = "Unguarded"
	Waived              Reason = "Waived"
	CSRMismatch         Reason = "CSRMismatch"
	ProofFailed         Reason = "ProofFailed"
	Canary              Reason = "Canary"
	TooLarge            Reason = "TooLarge"
	Malformed           Reason = "Malformed"
	SnapshotUnavailable Reason = "SnapshotUnavailable"
	Internal            Reason = "Internal"
)

// Reasons returns every Reason, in the order of docs/spec/reasons.md.
func Reasons() []Reason { //nolint:funlen // one line for each Reason
	return []Reason{
		Verified,
		Unsigned,
		SignatureInvalid,
		SignatureMalformed,
		WrongNamespace,
		SignerUnknown,
		SignerRevoked,
		SignerScope,
		KeyTypeRefused,
		TouchMissing,
		ThresholdNotMet,
		BytesChanged,
		NewlineChanged,
		TemplateFound,
		WarrantMissing,
		WarrantMalformed,
		WarrantMismatch,
		TargetRefused,
		NotYetValid,
		Expired,
		ValidityTooLong,
		SerialRollback,
		SerialReused,
		SerialJump,
		LedgerPending,
		ParamUndeclared,
		ParamInvalid,
		ClusterUnpinned,
		RawRefused,
		ModeDowngrade,
		ShimCommandRefused,
		UserRefused,
		PortRefused,
		HostClassRefused,
		ProfileRefused,
		NamespaceRefused,
		NodeNameRefused,
		NodeNameTaken,
		ClusterRefused,
		HostKeyNotPinned,
		SignersNotInPolicy,
		InUse,
		PolicyUnavailable,
		PolicyExpired,
		PolicyUnsigned,
		PolicyRollback,
		PolicyEquivocation,
		PolicyMalformed,
		PolicyWrongCluster,
		RootFork,
		AnchorChanged,
		DemoRoot,
		StatementRejected,
		ClassUnknown,
		PathRefused,
		ValueRefused,
		RuleRefused,
		Tampered,
		NotCanonical,
		KindMismatch,
		VersionRollback,
		VersionEquivocated,
		MemberMissing,
		CompositeForeign,
		Unguarded,
		Waived,
		CSRMismatch,
		ProofFailed,
		Canary,
		TooLarge,
		Malformed,
		SnapshotUnavailable,
		Internal,
	}
}
