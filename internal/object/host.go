package object

// HostClassLabel groups hosts into classes.
const HostClassLabel = GroupKPSSH + "/host-class"

// ExecVerified is the execMode in which a host runs only signed scripts. The
// CRD's default is Raw, set before any webhook sees the object.
const ExecVerified = "Verified"

// Host is what we read of an SSHHost, with upstream's defaults where a field is
// absent.
type Host struct {
	Meta
	Address        string
	Port           int
	User           string
	ExecMode       string
	ShimCommand    string
	TrustedSigners []string
	SecretName     string
	NodeAddress    string
}

// ParseHost reads an SSHHost from JSON. The error carries Malformed.
func ParseHost(raw []byte) (*Host, error) {
	m, spec, err := parse(raw, KindHost)
	if err != nil {
		return nil, err
	}
	h := &Host{Meta: m, Port: 22, User: "root", ExecMode: "Raw"}
	var secret fields
	err = spec.getAll("spec", map[string]any{
		"address": &h.Address, "port": &h.Port, "user": &h.User, "execMode": &h.ExecMode, "shimCommand": &h.ShimCommand,
		"trustedSigners": &h.TrustedSigners, "sshKeySecretRef": &secret, "nodeAddress": &h.NodeAddress,
	})
	if err != nil {
		return nil, err
	}
	if err := secret.get("spec.sshKeySecretRef", "name", &h.SecretName); err != nil {
		return nil, err
	}
	return h, nil
}
