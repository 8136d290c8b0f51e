package token

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/kubeletcsr"
)

const (
	// Finalizer is on a HostRun while a token of it may exist.
	Finalizer = "hostwarrant.dev/token"

	// Life of a token. The admission policy hostwarrant-minter-secrets allows ten minutes by the API
	// server's clock: the minter's may be a minute ahead.
	Life = 9 * time.Minute

	// Group is that of our tokens alone, beside Bootstrappers, which every bootstrap token has.
	Group         = kubeletcsr.Group
	Bootstrappers = "system:bootstrappers"

	// UserPrefix and an id are the name under which a token's bearer is known.
	UserPrefix = kubeletcsr.TokenUser

	// ValueKey and ExpirationKey are the keys of the Secret that hands a token to the relay.
	ValueKey      = "token"
	ExpirationKey = "expiration"

	bootstrapPrefix = "bootstrap-token-" // k8s.io/cluster-bootstrap/token/api
	idPrefix        = "hw"
	handoverPrefix  = "hw-token-"
)

// Reasons of the condition Joined, and Pending of Delivered (docs/spec/join.md, Token).
const (
	Pending           = "TokenPending"
	Recorded          = "TokenRecorded"
	Issued            = "TokenIssued"
	Expired           = "TokenExpired"
	Lost              = "TokenLost"
	RunEnded          = "RunEnded"
	NodeRegistered    = "NodeRegistered"
	AutoApproverBound = "AutoApproverBound"
)

// Token is one bootstrap token.
type Token struct{ ID, secret string }

// String is the public half: what is printed by mistake is no secret.
func (t Token) String() string { return t.ID }

// idForm is that of an id of ours.
var idForm = regexp.MustCompile(`^hw[a-z0-9]{4}$`)

// IsID reports whether the text is an id of ours.
func IsID(text string) bool { return idForm.MatchString(text) }

// New chooses a token: 80 random bits in its secret half.
func New() Token {
	return Token{ID: idPrefix + strings.ToLower(rand.Text()[:4]), secret: strings.ToLower(rand.Text()[:16])}
}

// Value is what is put into the join script's parameter.
func (t Token) Value() string { return t.ID + "." + t.secret }

// BootstrapName is the Secret of kube-system by which the API server knows a token.
func BootstrapName(id string) string { return bootstrapPrefix + id }

// HandoverName is the Secret of a run's namespace from which the relay takes the token.
func HandoverName(run types.UID) string { return handoverPrefix + string(run) }

// IsHandover reports whether a Secret's name is that of such a Secret.
func IsHandover(name string) bool { return strings.HasPrefix(name, handoverPrefix) }

// Bootstrap is the Secret by which the API server knows the token: to authenticate, in our group, and
// no longer than until then.
func (t Token) Bootstrap(expires time.Time) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: BootstrapName(t.ID)},
		Type:       corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{
			"token-id":                       []byte(t.ID),
			"token-secret":                   []byte(t.secret),
			"expiration":                     []byte(expires.UTC().Format(time.RFC3339)),
			"usage-bootstrap-authentication": []byte("true"),
			"auth-extra-groups":              []byte(Group),
		},
	}
}

// Handover is the Secret from which the relay takes the token. It goes with its run.
func (t Token) Handover(run *v1alpha1.HostRun, expires time.Time) *corev1.Secret {
	owner := metav1.NewControllerRef(run, v1alpha1.GroupVersion().WithKind("HostRun"))
	owner.BlockOwnerDeletion = nil // which would need rights on the run's finalizers
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: run.Namespace, Name: HandoverName(run.UID), OwnerReferences: []metav1.OwnerReference{*owner}},
		Type:       corev1.SecretTypeOpaque,
		Data: map[string][]byte{
			ValueKey:      []byte(t.Value()),
			ExpirationKey: []byte(expires.UTC().Format(time.RFC3339)),
		},
	}
}

// Usable says of the condition Joined that the token of status.tokenID is there. The zero value is not.
func Usable(joined *metav1.Condition) bool {
	if joined == nil {
		return false
	}
	return joined.Status == metav1.ConditionTrue || joined.Status == metav1.ConditionUnknown && joined.Reason == Issued
}

// Unproved reports whether the host of a run was asked for a proof, and has not answered.
func Unproved(run *v1alpha1.HostRun) bool {
	p := run.Status.Proof
	return p != nil && p.Nonce != "" && (p.Text == "" || p.Signature == "")
}

// NoProof says of such a run what was waited for, and where to look.
func NoProof(run *v1alpha1.HostRun) string {
	return fmt.Sprintf("the host %s/%s was asked for a proof and did not answer in the token's time; what the relay met stands in the events NoProof of the HostRun",
		run.Namespace, run.Spec.HostRef.Name)
}

// Read takes the token out of the Secret that hands it over: "" where that is another's, or its time
// is over.
func Read(data map[string][]byte, id string, now time.Time) string {
	value := string(data[ValueKey])
	owner, _, _ := strings.Cut(value, ".")
	end, err := time.Parse(time.RFC3339, string(data[ExpirationKey]))
	// check: Expired: a token that is over, or of an earlier attempt, is sent to a host, which can do nothing with it
	if owner != id || err != nil || !now.Before(end) {
		return ""
	}
	return value
}
