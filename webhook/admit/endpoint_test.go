package admit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// endpoint is the validating one of a world.
func (w *world) endpoint() *Endpoint {
	return &Endpoint{Reviewer: w.validator, Limits: NewLimits(), Recorder: w.recorder, Log: silent()}
}

// review is the JSON of a review; edits replace text in it.
func review(t *testing.T, req *admissionv1.AdmissionRequest, edits ...string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": req})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(string(text), edits[i]) {
			t.Fatalf("no %q in the review", edits[i])
		}
		text = []byte(strings.Replace(string(text), edits[i], edits[i+1], 1))
	}
	return string(text)
}

func post(e *Endpoint, body io.Reader) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/validate", body)
	r.Header.Set("Content-Type", "application/json")
	return serve(e, r)
}

func serve(e *Endpoint, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// answerOfBody decodes an answer; nil where the status is not 200.
func answerOfBody(t *testing.T, w *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	if w.Code != http.StatusOK {
		return nil
	}
	var answer admissionv1.AdmissionReview
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Response == nil || answer.Kind != reviewKind || answer.APIVersion != "admission.k8s.io/v1" {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return answer.Response
}

func TestReviewsAreReadStrictly(t *testing.T) {
	w := newWorld(t)
	good := create(t, w.host())
	changed := update(t, with(w.host(), "port", 23), w.host())
	gone := create(t, profile(scripts(), nil))
	gone.Operation, gone.OldObject = admissionv1.Delete, gone.Object
	gone.Object.Raw = nil
	for name, c := range map[string]struct {
		body   string
		status int
		want   decision.Reason // of an answer with status 200
	}{
		"a good one":                       {review(t, good), 200, decision.Verified},
		"an unknown field":                 {review(t, good, `"uid":"1"`, `"uid":"1","future":{}`), 200, decision.Verified},
		"a good update":                    {review(t, changed), 200, decision.Verified},
		"a good deletion":                  {review(t, gone), 200, decision.Verified},
		"nothing":                          {"", 400, ""},
		"no JSON":                          {"hello", 400, ""},
		"cut off":                          {review(t, good)[:200], 200, decision.Malformed},
		"cut off before the uid":           {review(t, good)[:20], 400, ""},
		"something after it":               {review(t, good) + "{}", 200, decision.Malformed},
		"no request":                       {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, 400, ""},
		"a null request":                   {`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":null}`, 400, ""},
		"a request without uid":            {review(t, good, `"uid":"1"`, `"uid":""`), 400, ""},
		"a uid of another type":            {review(t, good, `"uid":"1"`, `"uid":1`), 400, ""},
		"another version":                  {review(t, good, "admission.k8s.io/v1", "admission.k8s.io/v2"), 200, decision.Malformed},
		"another kind":                     {review(t, good, "AdmissionReview", "ConversionReview"), 200, decision.Malformed},
		"request in capitals":              {review(t, good, `"request"`, `"Request"`), 400, ""},
		"two requests":                     {review(t, good, `"request":`, `"request":{"uid":"2"},"request":`), 200, decision.Malformed},
		"two operations":                   {review(t, good, `"operation":"CREATE"`, `"operation":"CONNECT","operation":"CREATE"`), 200, decision.Malformed},
		"a field of another type":          {review(t, good, `"operation":"CREATE"`, `"dryRun":"yes","operation":"CREATE"`), 200, decision.Malformed},
		"no object":                        {review(t, good, `"object":{`, `"other":{`), 200, decision.Malformed},
		"a null object":                    {review(t, gone, `"DELETE"`, `"CREATE"`), 200, decision.Malformed},
		"an object that is a list":         {review(t, good, `"object":{`, `"object":[],"other":{`), 200, decision.Malformed},
		"an update without the old object": {review(t, changed, `"oldObject":{`, `"other":{`), 200, decision.Malformed},
		"an old object that is a text":     {review(t, changed, `"oldObject":{`, `"oldObject":"x","other":{`), 200, decision.Malformed},
		"a deletion without the object":    {review(t, gone, `"oldObject":{`, `"other":{`), 200, decision.Malformed},
		"an operation nobody judges":       {review(t, changed, `"UPDATE"`, `"CONNECT"`), 200, decision.KindMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			w.recorder.unread = nil
			answer := post(w.endpoint(), strings.NewReader(c.body))
			if answer.Code != c.status {
				t.Fatalf("status %d: %s", answer.Code, answer.Body)
			}
			r := answerOfBody(t, answer)
			if r == nil {
				if len(w.recorder.unread) != 1 || w.recorder.unread[0] != decision.Malformed {
					t.Errorf("counted %v", w.recorder.unread)
				}
				return
			}
			if r.UID == "" || reason(r) != c.want || r.Allowed != (c.want == decision.Verified) {
				t.Errorf("uid %q, allowed %v, %s: %s", r.UID, r.Allowed, reason(r), r.Result.Message)
			}
			if c.want == decision.Malformed && len(w.recorder.unread) != 1 {
				t.Errorf("counted %v", w.recorder.unread)
			}
		})
	}
}

func TestOnlyPostedJSONIsReviewed(t *testing.T) {
	w := newWorld(t)
	text := review(t, create(t, w.host()))
	for name, c := range map[string]struct {
		method, kind string
		status       int
	}{
		"as it should be":    {http.MethodPost, "application/json", 200},
		"with a charset":     {http.MethodPost, "application/json; charset=utf-8", 200},
		"got":                {http.MethodGet, "application/json", 405},
		"of another type":    {http.MethodPost, "application/yaml", 415},
		"of no type":         {http.MethodPost, "", 415},
		"of a type in parts": {http.MethodPost, "application/json; =", 415},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, "/validate", strings.NewReader(text))
			r.Header.Set("Content-Type", c.kind)
			if answer := serve(w.endpoint(), r); answer.Code != c.status {
				t.Errorf("status %d; want %d", answer.Code, c.status)
			} else if closes := answer.Header().Get("Connection") == "close"; closes != (c.status != 200) {
				t.Errorf("the connection is closed: %v", closes)
			}
		})
	}
}

// filler is n bytes of white space, which JSON allows, without holding them.
func filler(n int64) io.Reader { return io.LimitReader(spaces{}, n) }

type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestTheSizeOfAReviewIsBounded(t *testing.T) {
	w := newWorld(t)
	text := review(t, create(t, w.host()))
	room := int64(MaxBody - len(text))
	for name, c := range map[string]struct {
		body   io.Reader
		length int64 // announced
		want   decision.Reason
	}{
		"as large as may be":           {io.MultiReader(strings.NewReader(text), filler(room)), MaxBody, decision.Verified},
		"the same, unannounced":        {io.MultiReader(strings.NewReader(text), filler(room)), -1, decision.Verified},
		"a byte more":                  {io.MultiReader(strings.NewReader(text), filler(room+1)), MaxBody + 1, decision.TooLarge},
		"a byte more, unannounced":     {io.MultiReader(strings.NewReader(text), filler(room+1)), -1, decision.TooLarge},
		"50 MiB":                       {io.MultiReader(strings.NewReader(text), filler(50<<20)), 50 << 20, decision.TooLarge},
		"50 MiB, unannounced":          {io.MultiReader(strings.NewReader(text), filler(50<<20)), -1, decision.TooLarge},
		"a terabyte that is announced": {io.MultiReader(strings.NewReader(text), filler(freeBody)), 1 << 40, decision.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/validate", c.body)
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = c.length
			answer := answerOfBody(t, serve(w.endpoint(), r))
			if answer == nil || answer.UID != "1" || reason(answer) != c.want || answer.Allowed != (c.want == decision.Verified) {
				t.Fatalf("%+v; want %s", answer, c.want)
			}
		})
	}
	t.Run("50 MiB without a uid", func(t *testing.T) {
		if answer := post(w.endpoint(), filler(50<<20)); answer.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("status %d", answer.Code)
		}
	})
}

func TestABodyThatBreaksOffIsRefused(t *testing.T) {
	w := newWorld(t)
	text := review(t, create(t, w.host()))
	broken := io.MultiReader(strings.NewReader(text), iotest.ErrReader(errors.New("connection reset")))
	if answer := answerOfBody(t, post(w.endpoint(), broken)); answer == nil || answer.Allowed || reason(answer) != decision.Malformed {
		t.Fatalf("%+v", answer)
	}
}

// full is an endpoint of which every room of a kind is taken.
func full(t *testing.T, w *world, room func(*Limits) chan struct{}) *Endpoint {
	t.Helper()
	e := w.endpoint()
	taken := room(e.Limits)
	for range cap(taken) {
		taken <- struct{}{}
	}
	return e
}

func TestReviewsBeyondTheLimitsWaitAndAreRefusedInTheEnd(t *testing.T) {
	w := newWorld(t)
	text := review(t, create(t, w.host()))
	for name, c := range map[string]struct {
		room func(*Limits) chan struct{}
		more int64
	}{
		"too many small bodies": {func(l *Limits) chan struct{} { return l.small }, freeBody},
		"too many large bodies": {func(l *Limits) chan struct{} { return l.large }, smallBody},
		"too many are judged":   {func(l *Limits) chan struct{} { return l.judging }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := full(t, w, c.room)
			ask := func(wait time.Duration) *admissionv1.AdmissionResponse {
				ctx, cancel := context.WithTimeout(t.Context(), wait)
				defer cancel()
				r := httptest.NewRequest(http.MethodPost, "/validate", io.MultiReader(strings.NewReader(text), filler(c.more))).WithContext(ctx)
				r.Header.Set("Content-Type", "application/json")
				return answerOfBody(t, serve(e, r))
			}
			if r := ask(20 * time.Millisecond); r == nil || r.Allowed || reason(r) != decision.Internal {
				t.Fatalf("%+v", r)
			}
			time.AfterFunc(20*time.Millisecond, func() { <-c.room(e.Limits) })
			if r := ask(10 * time.Second); r == nil || !r.Allowed {
				t.Fatalf("once there is room: %+v", r)
			}
			if left := len(c.room(e.Limits)); left != cap(c.room(e.Limits))-1 {
				t.Errorf("%d rooms are taken; want one less than all", left)
			}
		})
	}
	t.Run("a small review needs no room for bodies", func(t *testing.T) {
		e := full(t, w, func(l *Limits) chan struct{} { return l.small })
		if r := answerOfBody(t, post(e, strings.NewReader(text))); r == nil || !r.Allowed {
			t.Errorf("%+v", r)
		}
	})
}

// startled panics as soon as it is asked.
type startled struct{ *Validator }

func (startled) Handle(context.Context, *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	panic("out of order")
}

func TestAPanicOutsideTheEngineRefuses(t *testing.T) {
	w := newWorld(t)
	e := w.endpoint()
	text := review(t, create(t, w.host()))
	e.Reviewer = startled{w.validator}
	for range 2 * cap(e.Limits.judging) {
		if r := answerOfBody(t, post(e, strings.NewReader(text))); r == nil || r.Allowed || r.UID != "1" || reason(r) != decision.Internal {
			t.Fatalf("%+v", r)
		}
	}
	e.Reviewer = w.validator
	if r := answerOfBody(t, post(e, strings.NewReader(text))); r == nil || !r.Allowed {
		t.Fatalf("without the panic: %+v", r)
	}
}

func TestTheMutatingHalfLeavesWhatItCannotReadToTheAPIServer(t *testing.T) {
	w := newWorld(t)
	e := w.endpoint()
	e.Reviewer = &Mutator{Trust: w.trust, Log: silent(), Now: w.validator.Now}
	text := review(t, create(t, w.host()))
	if r := answerOfBody(t, post(e, strings.NewReader(text))); r == nil || !r.Allowed {
		t.Errorf("%+v", r)
	}
	if answer := post(e, strings.NewReader(text[:200])); answer.Code != http.StatusBadRequest {
		t.Errorf("status %d: %s", answer.Code, answer.Body)
	}
}

// The uid is found wherever an API server could write it, and nowhere else.
func TestUIDOfABeginning(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"a-b","kind":{`: "a-b",
		`{"request":{"kind":{"uid":"no"},"uid":"yes"`:                                                  "yes",
		`{"other":{"uid":"no"},"request":{`:                                                            "",
		`{"request":"uid"`:                                                                             "",
		`{"request":["uid","x"]`:                                                                       "",
		`{"request":{"uid":{"a":1`:                                                                     "",
		`["request",{"uid":"x"}]`:                                                                      "",
		``:                                                                                             "",
	} {
		if got := uidOf([]byte(text)); string(got) != want {
			t.Errorf("%s: %q; want %q", text, got, want)
		}
	}
	if got := uidOf(bytes.Repeat([]byte("["), 1<<20)); got != "" {
		t.Errorf("%q", got)
	}
}
