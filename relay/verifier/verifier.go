package verifier

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

const (
	// Timeout bounds the whole question, from dialling to the last byte of the answer.
	Timeout = 10 * time.Second

	// maxAnswer is far above any answer: a uid, a word and a sentence.
	maxAnswer = 16 << 10

	// maxMessage bounds what is passed on of the service's own words.
	maxMessage = 200
)

// Verifier asks one service.
type Verifier struct {
	url    string
	client *http.Client
}

// New makes a Verifier for an https URL. ca holds the certificates, PEM, of which
// one must have signed the service's; nil means those that the machine trusts.
func New(address string, ca []byte) (*Verifier, error) {
	u, err := url.Parse(address)
	// check: Malformed: an answer that anybody on the way can write
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "" {
		return nil, errors.New("the verifier's URL is not of the form https://HOST[:PORT]/PATH")
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != nil {
		config.RootCAs = x509.NewCertPool()
		// check: Malformed: a file of no certificates, in whose place the machine's would be trusted
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, errors.New("the verifier's CA file has no certificate")
		}
	}
	return &Verifier{url: u.String(), client: &http.Client{
		Timeout: Timeout,
		// No proxy: the environment does not say who may answer.
		Transport: &http.Transport{TLSClientConfig: config, MaxResponseHeaderBytes: maxAnswer, DisableKeepAlives: true},
		// A redirect is an answer that is no consent: whoever can make one would answer in the service's place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Ask returns nil only where the service allowed exactly this question. The error
// says in one sentence who refused, and why.
func (v *Verifier) Ask(ctx context.Context, q Question) error {
	body, err := json.Marshal(request{apiVersion, kind, q})
	if err != nil {
		return fmt.Errorf("the verifier could not be asked: %v", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the verifier could not be asked: %v", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := v.client.Do(r)
	if err != nil {
		return fmt.Errorf("the verifier could not be asked: %s", decision.OneLine(err.Error(), maxMessage))
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	if closed := answer.Body.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("the verifier's answer could not be read: %s", decision.OneLine(err.Error(), maxMessage))
	}
	return judge(answer.StatusCode, text, q.UID)
}

// judge takes an answer for consent only if it is nothing else.
func judge(status int, text []byte, uid string) error {
	// check: Malformed: the page of a proxy, or a redirect, that looks like an answer
	if status != http.StatusOK {
		return fmt.Errorf("the verifier answered with HTTP status %d", status)
	}
	// check: Malformed: an answer that is cut off where it says no
	if len(text) > maxAnswer {
		return fmt.Errorf("the verifier's answer is longer than %d bytes", maxAnswer)
	}
	var a response
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&a)
	// check: Malformed: half an answer, a second one behind the first, or one in other words than ours
	if err != nil || decoder.More() || a.APIVersion != apiVersion || a.Kind != kind {
		return fmt.Errorf("the verifier's answer is no %s of %s", kind, apiVersion)
	}
	// check: Malformed: the answer to another question
	if uid == "" || a.Response.UID != uid {
		return errors.New("the verifier answered another question")
	}
	// check: CSRMismatch: a host that whoever looks at its TPM says is none
	if !a.Response.Allowed {
		return fmt.Errorf("the verifier refused: %s", decision.OneLine(a.Response.Message, maxMessage))
	}
	return nil
}
