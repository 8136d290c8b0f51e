package verifier

// The names by which request and answer are told from anything else.
const (
	apiVersion = "hostwarrant.dev/v1alpha1"
	kind       = "JoinReview"
)

// Question is what the service is asked. It holds no secret.
type Question struct {
	// UID is that of the CertificateSigningRequest; the answer repeats it.
	UID string `json:"uid"`
	// Cluster is the cluster's id.
	Cluster string `json:"cluster"`
	// Namespace and Run name the HostRun, RunUID is its UID.
	Namespace string `json:"namespace"`
	Run       string `json:"run"`
	RunUID    string `json:"runUID"`
	// Host is the SSHHost's name, Address where it is dialled.
	Host    string `json:"host"`
	Address string `json:"address"`
	// Node is the name that the host joins under.
	Node string `json:"node"`
	// Key is the fingerprint of the request's key, CertificateRequest the request itself, PEM.
	Key                string `json:"key"`
	CertificateRequest string `json:"certificateRequest"`
	// Proof is the text that the host signed, ProofSignature its SSHSIG; "" where proofs are switched off.
	Proof          string `json:"proof,omitempty"`
	ProofSignature string `json:"proofSignature,omitempty"`
}

type request struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Request    Question `json:"request"`
}

type response struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Response   struct {
		UID     string `json:"uid"`
		Allowed bool   `json:"allowed"`
		Message string `json:"message"`
	} `json:"response"`
}
