package object

// NodeClass is what we read of an SSHNodeClass.
type NodeClass struct {
	Meta
	// Profile is spec.joinProfileRef.name.
	Profile string
	// JoinSecret is spec.joinSecretRef.name, "" where there is none.
	JoinSecret string
	Vars       map[string]string
	// HasCluster says that spec.cluster is there; Endpoint and CABundle are its fields.
	HasCluster         bool
	Endpoint, CABundle string
	// Selector is spec.hostSelector.
	Selector Selector
}
