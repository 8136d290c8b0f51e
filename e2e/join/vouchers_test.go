//go:build linux

package join

import (
	"crypto/ecdsa"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"github.com/hostwarrant/hostwarrant/e2e/courier"
	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/relay/verifier"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// Who vouches for a host beside the list of keys: an authority that the policy names, and a service of the operator's.
func TestWhoVouchesForAHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	own := newKey(t)
	h := w.waiter(t, "host-a", own)
	t.Run("an authority, by a certificate", func(t *testing.T) { w.certificates(t, h, own) })
	t.Run("a verifier", func(t *testing.T) { w.verifiers(t, h, own) })
}

// certified is a host certificate of the host's Ed25519 key, with a change.
func certified(t *testing.T, ca testkit.Signer, key ssh.PublicKey, names []string, change func(*ssh.Certificate)) []byte {
	t.Helper()
	return ssh.MarshalAuthorizedKey(testkit.Certify(t, ca, key, names, func(c *ssh.Certificate) {
		c.CertType, c.Permissions = ssh.HostCert, ssh.Permissions{}
		c.ValidAfter, c.ValidBefore = uint64(time.Now().Add(-time.Hour).Unix()), uint64(time.Now().Add(time.Hour).Unix())
		if change != nil {
			change(c)
		}
	}))
}

// certificates: what a host's own sshd and ssh-keygen make of a certificate, from the file beside the key to the approval.
func (w *world) certificates(t *testing.T, h *lab.Host, own *ecdsa.PrivateKey) {
	ca, stranger := testkit.NewSigner(t, "ed25519"), testkit.NewSigner(t, "ed25519")
	w.RewritePolicy(t.Context(), t, map[string]string{"    version: 1\n": "    version: 2\n", `nodeNames: ["*"]`: `nodeNames: ["*"], hostCA: "` + ca.Line + `"`})
	t.Run("a key that nobody listed", func(t *testing.T) { w.rawKey(t, h) })
	// So that the relay reaches it whatever its certificate says: by a key of its that signs no proofs.
	w.ListHostKey(t, h.Name, h.OtherHostKey())
	w.Secret(t, h.Name, w.Login, h.KnownHostLineOf(h.OtherHostKey()))
	mine := []string{h.Addr.String()}
	const file = "/etc/ssh/ssh_host_ed25519_key-cert.pub"
	for _, c := range []struct {
		name        string
		certificate []byte
		want        string // "" is approved
	}{
		{"none", nil, "ProofFailed: the proof is signed by SHA256:"},
		{"by-another", certified(t, stranger, h.HostKey, mine, nil), "ProofFailed: the proof is signed by SHA256:"},
		{"another-host", certified(t, ca, h.HostKey, []string{"10.0.0.1", "host-a"}, nil), "ProofFailed: the host certificate is for other names"},
		{"a-pattern", certified(t, ca, h.HostKey, []string{"*"}, nil), "ProofFailed: the host certificate is for other names"},
		{"no-names", certified(t, ca, h.HostKey, nil, nil), "ProofFailed: host certificate: KeyTypeRefused: "},
		{"a-user's", certified(t, ca, h.HostKey, mine, func(c *ssh.Certificate) { c.CertType = ssh.UserCert }), "ProofFailed: host certificate: KeyTypeRefused: "},
		{"for-ever", certified(t, ca, h.HostKey, mine, func(c *ssh.Certificate) { c.ValidBefore = ssh.CertTimeInfinity }), "ProofFailed: host certificate: KeyTypeRefused: "},
		{"ended", certified(t, ca, h.HostKey, mine, func(c *ssh.Certificate) { c.ValidBefore = uint64(time.Now().Add(-time.Minute).Unix()) }), "ProofFailed: host certificate: Expired: "},
		{"its-own", certified(t, ca, h.HostKey, mine, nil), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.certificate != nil {
				must(t, h.WriteFile(file, c.certificate, 0o644))
			}
			w.vouched(t, h, own, "cert-"+c.name, c.want)
		})
	}
	t.Run("pinned as an authority", func(t *testing.T) { w.pinnedAuthority(t, h, own, ca) })
}

// rawKey: where an authority is all that is known of a host, its Secret may pin no machine past that.
func (w *world) rawKey(t *testing.T, h *lab.Host) {
	w.join(t, "pinned-raw", h.Name, "pool-1")
	w.Ended(t, "pinned-raw", "HostKeyNotPinned", -1, -1)
	w.remove(t, "pinned-raw")
	w.nothingLeft(t)
}

// vouched takes a join of the real host to the word on its kubelet's request.
func (w *world) vouched(t *testing.T, h *lab.Host, own *ecdsa.PrivateKey, run, want string) {
	t.Helper()
	run = strings.ReplaceAll(run, "'", "")
	w.join(t, run, h.Name, "pool-1")
	value := w.running(t, run, h)
	said := w.decided(t, asks(t, w.bearer(t, value), "pool-1", own))
	if want == "" {
		want = "Approved HostwarrantApproved: the host proved that SHA256:"
	} else {
		want = "Denied Hostwarrant" + want
	}
	if !strings.HasPrefix(said, want) {
		t.Errorf("the request is %q, want %q", said, want)
	}
	goOn(t, h)
	w.Until(t, run, stepLimit, courier.IsOver)
	w.nothingLeft(t)
	w.remove(t, run)
}

// pinnedAuthority: the relay, too, takes the host by its certificate, and the host of another authority not at all.
func (w *world) pinnedAuthority(t *testing.T, h *lab.Host, own *ecdsa.PrivateKey, ca testkit.Signer) {
	shows(t, h, "ssh_host_ed25519_key-cert.pub")
	w.Secret(t, h.Name, w.Login, "@cert-authority * "+ca.Line)
	w.vouched(t, h, own, "pinned-ca", "")
	w.Secret(t, h.Name, w.Login, "@cert-authority * "+testkit.NewSigner(t, "ed25519").Line)
	w.join(t, "pinned-other", h.Name, "pool-1")
	w.Ended(t, "pinned-other", "HostKeyNotPinned", -1, -1)
	w.remove(t, "pinned-other")
	w.Secret(t, h.Name, w.Login, h.KnownHostLineOf(h.OtherHostKey()))
	w.nothingLeft(t)
}

// shows has sshd show a certificate.
func shows(t *testing.T, h *lab.Host, file string) {
	t.Helper()
	must(t, h.WriteFile("/etc/ssh/sshd_config.d/certificate.conf", []byte("HostCertificate /etc/ssh/"+file+"\n"), 0o644))
	h.ReloadSSHD(t)
}

// service is a fake: the operator's verifier, which answers by the node that it is asked about.
type service struct {
	*httptest.Server
	mu      sync.Mutex
	asked   map[string][]string // by node: method, path and headers in a line, and the body
	release chan struct{}       // ends the silence
}

func startService(t *testing.T) *service {
	t.Helper()
	s := &service{asked: map[string][]string{}, release: make(chan struct{})}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.answer))
	t.Cleanup(func() { close(s.release); s.Close() })
	return s
}

func (s *service) answer(out http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var q struct{ Request verifier.Question }
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil && r.Method == http.MethodPost {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.asked[q.Request.Node] = append(s.asked[q.Request.Node], fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("Cookie"), "\n", string(body)))
	s.mu.Unlock()
	uid, allowed, message := q.Request.UID, true, ""
	switch strings.TrimPrefix(q.Request.Node, "pool-v-") {
	case "no":
		allowed, message = false, "no such TPM\nhere"
	case "broken":
		out.WriteHeader(http.StatusInternalServerError)
	case "silent":
		select {
		case <-s.release:
		case <-r.Context().Done():
		}
	case "redirect":
		http.Redirect(out, r, "/elsewhere", http.StatusTemporaryRedirect)
		return
	case "other-question":
		uid = "01234567-89ab-cdef-0123-456789abcdef"
	}
	fmt.Fprintf(out, `{"apiVersion":"hostwarrant.dev/v1alpha1","kind":"JoinReview","response":{"uid":%q,"allowed":%t,"message":%q}}`, uid, allowed, message)
}

// questions are what was asked about a node.
func (s *service) questions(node string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[node]
}

// verifiers: the service has the last word, and whatever is not its consent denies.
func (w *world) verifiers(t *testing.T, h *lab.Host, own *ecdsa.PrivateKey) {
	s := startService(t)
	ca := testkit.WriteFile(t, t.TempDir(), "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	cluster, err := w.ControlPlane.CA()
	must(t, err)
	stranger := testkit.WriteFile(t, t.TempDir(), "other.pem", cluster)
	answers := map[string]string{ // by the end of the node's name
		"yes":            "Approved HostwarrantApproved: the host proved that SHA256:",
		"no":             "Denied HostwarrantVerifierRefused: the verifier refused: no such TPM",
		"broken":         "Denied HostwarrantVerifierRefused: the verifier answered with HTTP status 500",
		"silent":         "Denied HostwarrantVerifierRefused: the verifier could not be asked: ",
		"redirect":       "Denied HostwarrantVerifierRefused: the verifier answered with HTTP status 307",
		"other-question": "Denied HostwarrantVerifierRefused: the verifier answered another question",
	}
	w.asksAt(t, s.URL, ca)
	for name, want := range answers {
		t.Run(name, func(t *testing.T) {
			sent := w.verified(t, h, own, "v-"+name, want)
			asked := s.questions(sent.Node)
			if len(asked) != 1 || !strings.HasPrefix(asked[0], "POST / application/json\n") {
				t.Fatalf("asked %q", asked)
			}
			isSent(t, asked[0], sent)
		})
	}
	t.Run("by a certificate of another authority", func(t *testing.T) {
		w.asksAt(t, s.URL, stranger)
		sent := w.verified(t, h, own, "v-ca", "Denied HostwarrantVerifierRefused: the verifier could not be asked: ")
		if asked := s.questions(sent.Node); len(asked) > 0 {
			t.Errorf("it was asked %q", asked)
		}
	})
	t.Run("by a certificate for another name", func(t *testing.T) {
		w.asksAt(t, strings.Replace(s.URL, "127.0.0.1", "localhost", 1), ca)
		sent := w.verified(t, h, own, "v-name", "Denied HostwarrantVerifierRefused: the verifier could not be asked: ")
		if asked := s.questions(sent.Node); len(asked) > 0 {
			t.Errorf("it was asked %q", asked)
		}
	})
}

// asksAt starts a minter that asks there.
func (w *world) asksAt(t *testing.T, url, ca string) {
	t.Helper()
	must(t, w.minter.Stop())
	w.flags = []string{"--verifier-url=" + url, "--verifier-ca=" + ca}
	w.startMinter(t)
}

// verified takes one request past everything but the verifier, and gives what that has to be sent.
func (w *world) verified(t *testing.T, h *lab.Host, own *ecdsa.PrivateKey, name, want string) verifier.Question {
	t.Helper()
	c := w.claims(t, h.HostKey, name)[name]
	request, run := c.asksAndIsAsked(t, own)
	text, signature := w.signs(t, h, run.Status.Proof.Nonce, string(run.UID))
	c.brings(t, text, signature)
	if said := w.decided(t, request); !strings.HasPrefix(said, want) {
		t.Errorf("the request is %q, want %q", said, want)
	}
	if strings.HasPrefix(want, "Denied") {
		c.isDenied(t, request, "VerifierRefused", "")
	}
	csr := w.Request(t, request)
	key, err := ssh.NewPublicKey(own.Public())
	must(t, err)
	w.remove(t, name)
	w.nothingLeft(t)
	return verifier.Question{
		UID: string(csr.UID), Cluster: courier.ClusterID, Namespace: pool, Run: name, RunUID: string(run.UID), Host: "host-" + name, Address: "192.0.2.100", Node: c.node,
		Key: ssh.FingerprintSHA256(key), CertificateRequest: string(csr.Spec.Request), Proof: text, ProofSignature: signature,
	}
}

// isSent compares a question with what it has to be, and nothing else.
func isSent(t *testing.T, asked string, want verifier.Question) {
	t.Helper()
	_, body, _ := strings.Cut(asked, "\n")
	var got struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Request    verifier.Question `json:"request"`
	}
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	must(t, d.Decode(&got))
	if diff := cmp.Diff(want, got.Request); diff != "" || got.APIVersion != "hostwarrant.dev/v1alpha1" || got.Kind != "JoinReview" {
		t.Errorf("%s %s: %s", got.APIVersion, got.Kind, diff)
	}
}
