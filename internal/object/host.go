package object

import "strings"

// HostClassLabel groups hosts into classes.
const HostClassLabel = GroupKPSSH + "/host-class"

// DefaultClass is the class of a host without that label.
const DefaultClass = "default"

// The execModes. In Verified a host runs only signed scripts; the CRD's default is
// Raw, set before any webhook sees the object.
const (
	ExecVerified = "Verified"
	ExecRaw      = "Raw"
)

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
	// InstalledProfile is status.installedProfile, "<name>@<version>" or "".
	InstalledProfile string
}

// Class is the host's class.
func (h *Host) Class() string {
	if class := h.Labels[HostClassLabel]; class != "" {
		return class
	}
	return DefaultClass
}

// Installed is the name of the profile that is on the host, "" where there is none.
func (h *Host) Installed() string {
	name, _, _ := strings.Cut(h.InstalledProfile, "@")
	return name
}

// ParseHost reads an SSHHost from JSON. The error carries Malformed.
func ParseHost(raw []byte) (*Host, error) {
	o, err := parse(raw, KindHost)
	if err != nil {
		return nil, err
	}
	h := &Host{Meta: o.Meta, Port: 22, User: "root", ExecMode: ExecRaw}
	var secret fields
	err = o.spec.getAll("spec", map[string]any{
		"address": &h.Address, "port": &h.Port, "user": &h.User, "execMode": &h.ExecMode, "shimCommand": &h.ShimCommand,
		"trustedSigners": &h.TrustedSigners, "sshKeySecretRef": &secret, "nodeAddress": &h.NodeAddress,
	})
	if err != nil {
		return nil, err
	}
	if err := secret.getAll("spec.sshKeySecretRef", map[string]any{"name": &h.SecretName}); err != nil {
		return nil, err
	}
	return h, o.status.get("status", "installedProfile", &h.InstalledProfile)
}
