package admit

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"mime"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// Reviewer answers reviews.
type Reviewer interface {
	Handle(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse
	// Unread answers a request that could not be read; nil where an HTTP error is the answer.
	Unread(d decision.Decision) *admissionv1.AdmissionResponse
}

// Endpoint takes AdmissionReviews over HTTP. controller-runtime's own handler stops at 7 MiB, which
// is less than a legal update has, and allows a review that holds no object.
type Endpoint struct {
	Reviewer Reviewer
	Limits   *Limits
	Recorder Recorder
	Log      *slog.Logger
}

// ServeHTTP answers one review: with status 200 where the request's uid is known, and never with
// consent that the Reviewer did not give.
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status := misdirected(r); status != 0 {
		e.Recorder.Unread(decision.Malformed)
		w.Header().Set("Connection", "close") // no API server asks like that
		http.Error(w, "post an AdmissionReview as application/json", status)
		return
	}
	uid, answer, err := e.review(r)
	if err != nil {
		answer = e.unread(uid, err)
	}
	if answer == nil {
		w.Header().Set("Connection", "close")
		http.Error(w, decision.From(err).Denied(reviewKind, string(uid)).Message(), status(decision.From(err).Reason))
		return
	}
	answer.UID = uid
	e.write(w, answer)
}

// misdirected gives the HTTP status of a request that is no review at all, else 0.
func misdirected(r *http.Request) int {
	if r.Method != http.MethodPost {
		return http.StatusMethodNotAllowed
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType
	}
	return 0
}

// review reads and judges. An error says why nothing was judged.
func (e *Endpoint) review(r *http.Request) (uid types.UID, answer *admissionv1.AdmissionResponse, err error) {
	defer func() {
		// check: Internal: a crafted review that makes the reader panic must not get past it
		if p := recover(); p != nil {
			e.Log.Error("answering a review panicked", "panic", p, "uid", uid)
			answer, err = nil, decision.Errorf(decision.Internal, "answering the review failed").Try("report this with the webhook's log")
		}
	}()
	body, err := e.Limits.read(r.Context(), r)
	defer body.release()
	if err != nil {
		return uidOf(body.beginning()), nil, err
	}
	// Before decoding, which takes several times the memory of the body.
	if err := take(r.Context(), e.Limits.judging); err != nil {
		return uidOf(body.beginning()), nil, err
	}
	defer func() { <-e.Limits.judging }()
	req, err := parse(body.Bytes())
	if err != nil {
		return uidOf(body.beginning()), nil, err
	}
	uid = req.UID
	body.Buffer = bytes.Buffer{} // the request holds copies
	return uid, e.Reviewer.Handle(r.Context(), req), nil
}

// unread words why nothing was judged; nil where the review has no uid to answer to.
func (e *Endpoint) unread(uid types.UID, err error) *admissionv1.AdmissionResponse {
	d := decision.From(err).Denied(reviewKind, string(uid))
	e.Recorder.Unread(d.Reason)
	e.Log.Warn("a review was not read", "message", d.Message())
	if uid == "" {
		return nil
	}
	return e.Reviewer.Unread(d)
}

// status is the HTTP status of an answer to nobody in particular.
func status(reason decision.Reason) int {
	switch reason {
	case decision.TooLarge:
		return http.StatusRequestEntityTooLarge
	case decision.Internal:
		return http.StatusServiceUnavailable
	default:
		return http.StatusBadRequest
	}
}

func (e *Endpoint) write(w http.ResponseWriter, answer *admissionv1.AdmissionResponse) {
	text, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: reviewKind},
		Response: answer,
	})
	if err != nil {
		e.Log.Error("encoding the answer", "error", err)
		http.Error(w, "encoding the answer failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(text); err != nil {
		e.Log.Debug("writing the answer", "error", err)
	}
}
