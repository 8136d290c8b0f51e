package verifier_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/relay/verifier"
)

const yes = `{"apiVersion":"hostwarrant.dev/v1alpha1","kind":"JoinReview","response":{"uid":"u-1","allowed":true}}`

func question() verifier.Question {
	return verifier.Question{UID: "u-1", Cluster: "prod-1", Namespace: "pool", Run: "run-1", Host: "host-a", Node: "pool-1"}
}

// service is a stand-in that answers as told.
func service(t *testing.T, answer http.HandlerFunc) (*httptest.Server, *verifier.Verifier) {
	t.Helper()
	s := httptest.NewTLSServer(answer)
	t.Cleanup(s.Close)
	return s, client(t, s)
}

func client(t *testing.T, s *httptest.Server) *verifier.Verifier {
	t.Helper()
	v, err := verifier.New(s.URL+"/review", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func says(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

func TestAVerifierThatAllows(t *testing.T) {
	var got struct {
		APIVersion, Kind string
		Request          verifier.Question
	}
	_, v := service(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(body, &got) != nil || r.Method != http.MethodPost || r.URL.Path != "/review" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("asked by %s %s: %s, %v", r.Method, r.URL, body, err)
		}
		fmt.Fprint(w, yes)
	})
	if err := v.Ask(t.Context(), question()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(question(), got.Request); diff != "" || got.APIVersion != "hostwarrant.dev/v1alpha1" || got.Kind != "JoinReview" {
		t.Errorf("asked as %+v: %s", got, diff)
	}
}

// TestWhatIsNoConsentRefuses: whatever a service says but yes to this very question.
func TestWhatIsNoConsentRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"no":           {says(200, strings.Replace(yes, `true`, `false,"message":"unknown\nTPM"`, 1)), `the verifier refused: unknown\nTPM`},
		"nothing said": {says(200, strings.Replace(yes, `,"allowed":true`, ``, 1)), "the verifier refused"},
		"an error":     {says(500, yes), "HTTP status 500"},
		"created":      {says(201, yes), "HTTP status 201"},
		"a redirect to one that agrees": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/yes", http.StatusTemporaryRedirect)
		}, "HTTP status 307"},
		"nothing":                       {says(200, ""), "no JoinReview"},
		"text":                          {says(200, "yes"), "no JoinReview"},
		"another kind":                  {says(200, strings.Replace(yes, "JoinReview", "AdmissionReview", 1)), "no JoinReview"},
		"another version":               {says(200, strings.Replace(yes, "v1alpha1", "v1", 1)), "no JoinReview"},
		"one field more":                {says(200, strings.Replace(yes, `"allowed"`, `"denied":true,"allowed"`, 1)), "no JoinReview"},
		"two answers":                   {says(200, yes+yes), "no JoinReview"},
		"half an answer":                {says(200, yes[:len(yes)-2]), "no JoinReview"},
		"an answer to another question": {says(200, strings.Replace(yes, "u-1", "u-2", 1)), "another question"},
		"an answer to no question":      {says(200, strings.Replace(yes, `"uid":"u-1",`, ``, 1)), "another question"},
		"an answer that does not end":   {says(200, yes+strings.Repeat(" ", 17<<10)), "longer than"},
		"a connection that breaks":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "could not be asked"},
		"an answer that breaks half-way": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "4096")
			fmt.Fprint(w, yes)
		}, "could not be read"},
		"headers without end": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
			fmt.Fprint(w, yes)
		}, "could not be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			_, v := service(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/yes" {
					says(200, yes)(w, r)
					return
				}
				tt.answer(w, r)
			})
			if err := v.Ask(t.Context(), question()); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("answered %v, want an error that says %q", err, tt.says)
			}
		})
	}
}

func TestAQuestionWithoutAnIDHasNoAnswer(t *testing.T) {
	_, v := service(t, says(200, strings.Replace(yes, `"uid":"u-1",`, ``, 1)))
	if err := v.Ask(t.Context(), verifier.Question{}); err == nil {
		t.Error("allowed")
	}
}

// TestASlowVerifierRefuses: whoever waits for it is not held for longer than he says.
func TestASlowVerifierRefuses(t *testing.T) {
	ended := make(chan struct{})
	_, v := service(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil { // a server sees the end of a connection only behind the body
			t.Error(err)
		}
		<-r.Context().Done()
		close(ended)
		fmt.Fprint(w, yes)
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := v.Ask(ctx, question()); err == nil || !strings.Contains(err.Error(), "could not be asked") {
		t.Errorf("answered %v", err)
	}
	<-ended
	if verifier.Timeout > 10*time.Second {
		t.Errorf("without a bound of the caller's it waits %s", verifier.Timeout)
	}
}

// TestAnotherServiceIsNotBelieved: it has a certificate, but by another CA, or for another name.
func TestAnotherServiceIsNotBelieved(t *testing.T) {
	s, _ := service(t, says(200, yes))
	other, err := verifier.New(s.URL, []byte(foreignCA))
	if err != nil {
		t.Fatal(err)
	}
	machine, err := verifier.New(s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	renamed, err := verifier.New(strings.Replace(s.URL, "127.0.0.1", "127.0.0.2", 1), ca)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*verifier.Verifier{"another CA": other, "the machine's CAs": machine, "another name": renamed} {
		if err := v.Ask(t.Context(), question()); err == nil || !strings.Contains(err.Error(), "could not be asked") {
			t.Errorf("%s: answered %v", name, err)
		}
	}
}

func TestWhichVerifiersCanBeNamed(t *testing.T) {
	for _, url := range []string{"", "http://a/", "https://", "https:///x", "a:443", "https://user:secret@a/", "https://a/#b", "https://a b/", "unix:///x"} {
		if _, err := verifier.New(url, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, ca := range []string{"", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		if _, err := verifier.New("https://a/", []byte(ca)); err == nil {
			t.Errorf("a CA file of %q was taken", ca)
		}
	}
}

const foreignCA = `-----BEGIN CERTIFICATE-----
MIIBRjCB7aADAgECAgEBMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMTB2Fub3RoZXIw
IBcNMjMxMTE0MjIxMzIwWhgPMjExODEyMDkwMzMzMjBaMBIxEDAOBgNVBAMTB2Fu
b3RoZXIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAT/BMg5Th125tVMUyAU+g0o
lw0yemUEgv5cge6/9AeDLW8cJwBDsC/OccQc83dWRxTrIbwB4Go+KMgnyyCFpaDB
ozIwMDAPBgNVHRMBAf8EBTADAQH/MB0GA1UdDgQWBBTrIF/SYZiKhI4N1flaARtj
90mK1DAKBggqhkjOPQQDAgNIADBFAiAlwLbHOANTtlfEhmotniHCHyvf5H8fmBdl
lX4qIZtYNQIhAO3S1NO4nPZUZZElcDb8FPr0UkDIMnmfYCxauA0lQhx0
-----END CERTIFICATE-----
`
