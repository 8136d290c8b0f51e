package hostsetup

import (
	"io/fs"
	"path"
	"slices"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/krl"
	"github.com/hostwarrant/hostwarrant/internal/quorum"
	"github.com/hostwarrant/hostwarrant/internal/sshsig"
	"github.com/hostwarrant/hostwarrant/internal/statement"
	"github.com/hostwarrant/hostwarrant/internal/trustpolicy"
)

// Places on a host (docs/spec/shim.md, Files). The shim has the same as constants.
const (
	Account  = "kpssh"
	ShimPath = "/opt/kpssh/kpssh-shim"
	TrustDir = "/etc/kpssh"
	StateDir = "/var/lib/hostwarrant"
	RunDir   = "/run/kpssh"

	// KubeletKey is where kubelet keeps the key of its first certificate request while that is pending: tmpPrivateKeyFile
	// of its pkg/kubelet/certificate/bootstrap, in its default --cert-dir.
	KubeletKey = "/var/lib/kubelet/pki/kubelet-client.key.tmp"

	sshdPath    = "/etc/ssh/sshd_config.d/kpssh.conf"
	sudoersPath = "/etc/sudoers.d/kpssh"
	clusterPath = TrustDir + "/cluster"
	keysPath    = TrustDir + "/authorized_keys"
)

// Shipped are the files of shim/, byte for byte.
type Shipped struct {
	Shim, SSHD, Sudoers []byte
	// AuthorizedKeys is a template.
	AuthorizedKeys []byte
}

// Options are what the policy does not say of a host.
type Options struct {
	Place
	WarrantRequired bool
	// LoginKeys may log in as the account, from the addresses of From.
	LoginKeys []ssh.PublicKey
	From      []string
	// Settings of shim.conf, left to the shim's defaults where they are zero.
	KubeletKey               string
	MaxSerialStep, OutputMax int64
	// RootLink is the roots statement that made the roots what they are, with its
	// signatures behind it; nil for the first generation. Hosts count from there.
	RootLink []byte
}

// File is one file of a host, root's alone.
type File struct {
	Path    string
	Mode    fs.FileMode
	Content []byte
	// Statement is the kind that replaces the file once the host has accepted one.
	Statement statement.Kind
	// Seed is a file that is put there where there is none, and is the host's own from then on.
	Seed bool
}

// Directory is one directory of a host, root's alone.
type Directory struct {
	Path string
	Mode fs.FileMode
}

// Setup is what a host must hold.
type Setup struct {
	// PolicyVersion and PolicyDigest say which policy it was made of.
	PolicyVersion int
	PolicyDigest  string
	// Directories and Files are in the order in which they are to be put there: at
	// each step the account can do no more than the shim lets it.
	Directories []Directory
	Files       []File
	// Absent are files that must not be there.
	Absent []string
	// LoginAddress is one that the account may log in from, to ask sshd about.
	LoginAddress string
}

// New makes the setup of the hosts of a place from a policy that is in force at now.
// The error carries HostClassRefused, ClusterUnpinned, SignerScope or PolicyMalformed.
func New(p *trustpolicy.Policy, now time.Time, shipped Shipped, o Options) (*Setup, []Note, error) {
	if err := checkClass(p, o.Class); err != nil {
		return nil, nil, err
	}
	if err := checkKeys(p, o.LoginKeys); err != nil {
		return nil, nil, err
	}
	signers, notes, err := AllowedSigners(p, now, o.Place)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := clusterLines(p, o)
	if err != nil {
		return nil, nil, err
	}
	revoked, err := krl.Render(p.RevokedSigners(), uint64(p.Version), p.Issued)
	if err != nil {
		return nil, nil, err
	}
	keys, err := authorizedKeys(shipped.AuthorizedKeys, o)
	if err != nil {
		return nil, nil, err
	}
	s := &Setup{
		PolicyVersion: p.Version, PolicyDigest: p.Digest, Directories: directories(), LoginAddress: loginAddress(o.From),
		Files: []File{
			{Path: ShimPath, Mode: 0o755, Content: shipped.Shim},
			{Path: TrustDir + "/revoked_keys", Mode: 0o644, Content: revoked, Statement: statement.KindRevoke},
			{Path: TrustDir + "/allowed_signers", Mode: 0o644, Content: Lines(signers), Statement: statement.KindSigners},
			{Path: TrustDir + "/root_signers", Mode: 0o644, Content: Lines(rootSigners(p.Roots())), Statement: statement.KindRoots},
			{Path: TrustDir + "/floors", Mode: 0o644, Content: Lines(Floors(p)), Statement: statement.KindFloor},
			{Path: clusterPath, Mode: 0o644, Content: Lines(cluster)},
			{Path: TrustDir + "/shim.conf", Mode: 0o644, Content: Lines(shimConf(p, o))},
			{Path: sudoersPath, Mode: 0o440, Content: shipped.Sudoers},
			{Path: sshdPath, Mode: 0o644, Content: shipped.SSHD},
			{Path: keysPath, Mode: 0o644, Content: keys},
		},
	}
	if cluster == nil {
		s.Files = slices.DeleteFunc(s.Files, func(f File) bool { return f.Path == clusterPath })
		s.Absent = []string{clusterPath}
	}
	if o.RootLink != nil {
		link := File{Path: statementPath(statement.KindRoots), Mode: 0o600, Content: o.RootLink, Seed: true}
		s.Directories = append(s.Directories, Directory{path.Dir(link.Path), 0o700})
		at := slices.IndexFunc(s.Files, func(f File) bool { return f.Statement == statement.KindRoots })
		s.Files = slices.Insert(s.Files, at+1, link)
	}
	return s, append(notes, remarks(p, o, signers, cluster)...), nil
}

func directories() []Directory {
	return []Directory{{"/opt/kpssh", 0o755}, {TrustDir, 0o755}, {StateDir, 0o700}}
}

// loginAddress is where sshd is told that the account comes from, when it is asked
// what holds then: an address of RFC 5737 where nothing is known.
func loginAddress(from []string) string {
	for _, address := range from {
		if !slices.Contains([]rune(address), '/') {
			return address
		}
	}
	return "192.0.2.1"
}

// checkClass wants a class that some namespace of the policy has hosts of.
func checkClass(p *trustpolicy.Policy, class string) error {
	var known []string
	for _, space := range p.Hosts.Namespaces {
		known = append(known, space.Classes...)
	}
	slices.Sort(known)
	// check: HostClassRefused: a slip in the class leaves a host without the signers and targets meant for it
	if !slices.Contains(known, class) {
		return decision.Errorf(decision.HostClassRefused, "no namespace of the policy has hosts of class %.80q; its classes are %q", class, slices.Compact(known)).
			Try("give a class of joinProfiles.hosts.namespaces to --class")
	}
	return nil
}

// checkKeys wants keys of one use each.
func checkKeys(p *trustpolicy.Policy, logins []ssh.PublicKey) error {
	roots := p.Roots().Keys
	for _, signer := range p.Signers {
		// check: SignerScope: a day-to-day key that is a root too changes who may sign
		if quorum.Holds(roots, signer.Key) {
			return decision.Errorf(decision.SignerScope, "signer %q is a root key too (%s)", signer.Name, sshsig.Fingerprint(signer.Key)).
				Try("give the signer a key of its own in the policy")
		}
	}
	for _, key := range logins {
		signs := quorum.Holds(roots, key) || slices.ContainsFunc(p.Signers, func(s trustpolicy.Signer) bool { return quorum.Holds([]ssh.PublicKey{s.Key}, key) })
		// check: SignerScope: whoever takes over the relay, which holds the login key, must not be able to sign
		if signs {
			return decision.Errorf(decision.SignerScope, "the login key %s signs, too", sshsig.Fingerprint(key)).Try("give --login-key a key that is used for nothing else")
		}
	}
	return nil
}

// remarks are what people should know about a setup that is good.
func remarks(p *trustpolicy.Policy, o Options, signers, cluster []string) []Note {
	var notes []Note
	if len(signers) == 0 {
		notes = append(notes, warning("no signer of the policy may sign for these hosts: they refuse every script"))
	}
	if cluster == nil {
		notes = append(notes, warning("the policy pins no endpoint and CA of cluster %s: these hosts rely on warrants that do", o.Cluster))
	}
	if o.WarrantRequired && !p.RequireWarrant {
		notes = append(notes, note("the policy does not require warrants and these hosts do: they refuse scripts without one (--warrant optional takes them)"))
	}
	if p.RootVersion > 1 && o.RootLink == nil {
		notes = append(notes, warning("without the roots statement of version %d these hosts take no later one: give it to --root, or in the policy's rootChain", p.RootVersion))
	}
	if len(o.LoginKeys) == 0 {
		notes = append(notes, note("without --login-key nobody may log in as %s: the relay cannot reach these hosts", Account))
	}
	if !slices.Contains(p.Hosts.Users, Account) || !slices.Contains(p.Hosts.ShimCommands, ShimPath) {
		notes = append(notes, warning("the policy does not allow user %s with shim command %s: the cluster refuses such hosts", Account, ShimPath))
	}
	return notes
}
