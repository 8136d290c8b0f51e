package approver

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/relay/verifier"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func hostCertificate(t *testing.T, ca, host testkit.Signer, address string) *ssh.Certificate {
	t.Helper()
	return testkit.Certify(t, ca, host.PublicKey(), []string{address}, func(c *ssh.Certificate) { c.CertType = ssh.HostCert })
}

// verifier is a service that answers with a status and whether it allows.
func (w *world) verifier(answer func(verifier.Question) (status int, allowed bool)) {
	w.t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var q struct{ Request verifier.Question }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			w.t.Error(err)
		}
		status, allowed := answer(q.Request)
		out.WriteHeader(status)
		fmt.Fprintf(out, `{"apiVersion":"hostwarrant.dev/v1alpha1","kind":"JoinReview","response":{"uid":%q,"allowed":%t,"message":"no such TPM"}}`, q.Request.UID, allowed)
	}))
	w.t.Cleanup(s.Close)
	v, err := verifier.New(s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	if err != nil {
		w.t.Fatal(err)
	}
	w.a.Verifier = v
}

// TestARunThatIsOverWhileTheVerifierThinksGetsNoCertificate: ten seconds, in which it is cancelled and the
// minter takes its token.
func TestARunThatIsOverWhileTheVerifierThinksGetsNoCertificate(t *testing.T) {
	w := newWorld(t)
	w.start(w.csr("first", w.kubelet, nil))
	w.verifier(func(verifier.Question) (int, bool) {
		w.join(metav1.ConditionFalse, "RunEnded", "the run is over")
		w.tokens.token = nil
		return http.StatusOK, true
	})
	w.reconcile("first")
	w.answer(nil, w.hostKey)
	w.again("first", errNotRecorded)
	w.want("first", "", "")
	w.reconcile("first")
	w.want("first", "Denied HostwarrantCSRMismatch: no run has the token hwab12", "")
}

// TestAVerifierHasTheLastWord: it is asked once everything else has passed, and whatever is no consent denies.
func TestAVerifierHasTheLastWord(t *testing.T) {
	for name, tt := range map[string]struct {
		status  int
		allowed bool
		fails   bool // before it is asked
		asked   int
		want    string
	}{
		"yes":                         {200, true, false, 1, "Approved HostwarrantApproved"},
		"no":                          {200, false, false, 1, "Denied HostwarrantVerifierRefused: the verifier refused: no such TPM"},
		"out of order":                {503, true, false, 1, "Denied HostwarrantVerifierRefused: the verifier answered with HTTP status 503"},
		"not asked where proof fails": {200, true, true, 0, "Denied HostwarrantProofFailed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start(w.csr("first", w.kubelet, nil))
			asked := 0
			w.verifier(func(q verifier.Question) (int, bool) {
				asked++
				if q.Node != node || q.RunUID != runUID || q.Host != "host-a" || q.Proof == "" || !strings.HasPrefix(q.Key, "SHA256:") || q.CertificateRequest == "" {
					t.Errorf("asked %+v", q)
				}
				return tt.status, tt.allowed
			})
			w.reconcile("first")
			w.answer(func(f *proof.Facts) {
				if tt.fails {
					f.KubeletKey = ""
				}
			}, w.hostKey)
			w.reconcile("first")
			if got := w.settled("first"); !strings.HasPrefix(got, tt.want) || asked != tt.asked {
				t.Errorf("the request is %q, the verifier was asked %d times", got, asked)
			}
		})
	}
}
