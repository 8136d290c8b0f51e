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

	"github.com/hostwarrant/hostwarrant/internal/proof"
	"github.com/hostwarrant/hostwarrant/relay/verifier"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func hostCertificate(t *testing.T, ca, host testkit.Signer, address string) *ssh.Certificate {
	t.Helper()
	return testkit.Certify(t, ca, host.PublicKey(), []string{address}, func(c *ssh.Certificate) { c.CertType = ssh.HostCert })
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
			s := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
				asked++
				var q struct{ Request verifier.Question }
				if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
					t.Error(err)
				}
				if q.Request.Node != node || q.Request.RunUID != runUID || q.Request.Host != "host-a" || q.Request.Proof == "" || !strings.HasPrefix(q.Request.Key, "SHA256:") || q.Request.CertificateRequest == "" {
					t.Errorf("asked %+v", q.Request)
				}
				out.WriteHeader(tt.status)
				fmt.Fprintf(out, `{"apiVersion":"hostwarrant.dev/v1alpha1","kind":"JoinReview","response":{"uid":%q,"allowed":%t,"message":"no such TPM"}}`, q.Request.UID, tt.allowed)
			}))
			defer s.Close()
			v, err := verifier.New(s.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
			if err != nil {
				t.Fatal(err)
			}
			w.a.Verifier = v
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
