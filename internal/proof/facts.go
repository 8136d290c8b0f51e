package proof

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
)

// Namespace is the SSHSIG namespace of proofs.
const Namespace = "hostwarrant-proof"

// MaxBytes bounds a proof's text: the maxLength of HostRun.status.proof.text. Six
// hundred marks of ordinary length fit.
const MaxBytes = 65536

const (
	header = "hostwarrant-proof: v1"
	none   = "none"
	end    = "end"
)

// The spellings of docs/spec/shim.md. A profile is a file's name on the host, a DNS-1123 subdomain.
var (
	clusterID = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	uuid      = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	nonce     = regexp.MustCompile(`^[0-9a-f]{64}$`)
	number    = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`)
	profile   = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)
)

// maxProfile is the most bytes of an object's name.
const maxProfile = 253

// Facts are what a host says of itself.
type Facts struct {
	// Cluster is the id of the cluster that the host belongs to, "" where it was told none.
	Cluster string
	// RunUID and Nonce are those that it was asked with.
	RunUID, Nonce string
	// Marks are ascending by profile.
	Marks []Mark
	// Statements are in the order of statement.Kinds.
	Statements []Serial
	// BootID is the kernel's, which changes with each start.
	BootID string
	// Time is the host's clock, in seconds since 1970.
	Time int64
	// KubeletKey is the fingerprint "SHA256:…" of the key that the host's kubelet
	// waits with for a certificate, "" where it has none.
	KubeletKey string
}

// Mark is the highest serial of a profile that the host has accepted.
type Mark struct {
	Profile string
	Serial  int64
}

// Serial is that of the statement of a kind that is in force on the host.
type Serial struct {
	Kind   statement.Kind
	Serial int64
}

// Text is the one spelling of the facts, as a shim writes it.
func (f *Facts) Text() []byte {
	lines := []string{header, "cluster " + orNone(f.Cluster), "run-uid " + f.RunUID, "nonce " + f.Nonce}
	for _, m := range f.Marks {
		lines = append(lines, "mark "+m.Profile+" "+decimal(m.Serial))
	}
	for _, s := range f.Statements {
		lines = append(lines, "statement "+string(s.Kind)+" "+decimal(s.Serial))
	}
	lines = append(lines, "boot-id "+f.BootID, "time "+decimal(f.Time), "kubelet-key "+orNone(f.KubeletKey), end, "")
	return []byte(strings.Join(lines, "\n"))
}

func orNone(value string) string {
	if value == "" {
		return none
	}
	return value
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func validKey(text string) bool { return text == none || sshsig.ValidFingerprint(text) }
