package admit

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/hostwarrant/hostwarrant/internal/decision"
)

// reviewKind is what an API server posts.
const reviewKind = "AdmissionReview"

// unreadable is what an API server does not send.
func unreadable(format string, args ...any) *decision.Error {
	return decision.Errorf(decision.Malformed, format, args...).Try("no API server sends that: look at what stands between it and the webhook")
}

// parse reads an AdmissionReview: names as they are written, none twice. The error carries
// Malformed or TooLarge.
func parse(body []byte) (*admissionv1.AdmissionRequest, error) {
	if err := countable(body); err != nil {
		return nil, err
	}
	// check: Malformed: of a byte that is no text, decoding makes three, and two texts may become one
	if !utf8.Valid(body) {
		return nil, unreadable("the body is no UTF-8")
	}
	var review admissionv1.AdmissionReview
	strict, err := kjson.UnmarshalStrict(body, &review, kjson.DisallowDuplicateFields)
	// check: Malformed: what cannot be read must not pass for a request about nothing
	if err != nil {
		return nil, unreadable("the body is no JSON review: %.120s", err)
	}
	// check: Malformed: of two values under one name, the API server and we could each take another
	if len(strict) > 0 {
		return nil, unreadable("the review is ambiguous: %.120s", strict[0])
	}
	// check: Malformed: a review of another version, or another object, may mean its fields otherwise
	if review.Kind != reviewKind || review.APIVersion != admissionv1.SchemeGroupVersion.String() {
		return nil, unreadable("the body is a %.60q of %.60q, not an %s of %s", review.Kind, review.APIVersion, reviewKind, admissionv1.SchemeGroupVersion)
	}
	// check: Malformed: an answer without the request's uid is taken for no answer
	if review.Request == nil || review.Request.UID == "" {
		return nil, unreadable("the review holds no request with a uid")
	}
	return review.Request, complete(review.Request)
}

// complete wants the objects that the operation comes with.
func complete(req *admissionv1.AdmissionRequest) error {
	// check: Malformed: an empty object has nothing against it
	if req.Operation != admissionv1.Delete && !isObject(req.Object.Raw) {
		return unreadable("the request holds no object").At("request.object")
	}
	// check: Malformed: an update is exempt by what was stored before, and a deletion judged by it
	if req.Operation != admissionv1.Create && !isObject(req.OldObject.Raw) {
		return unreadable("the request holds no old object").At("request.oldObject")
	}
	return nil
}

// isObject tells a JSON object, whose syntax was read already, from other values.
func isObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}

// uidOf finds the request's uid near the beginning of a body that cannot be read whole, where API
// servers write it; "" where it is not there.
func uidOf(prefix []byte) types.UID {
	d := json.NewDecoder(bytes.NewReader(prefix))
	if !enter(d, "request") {
		return ""
	}
	if !at(d, "uid") {
		return ""
	}
	uid, err := d.Token()
	text, ok := uid.(string)
	if err != nil || !ok {
		return ""
	}
	return types.UID(text)
}

// enter goes into the member of an object.
func enter(d *json.Decoder, name string) bool {
	open, err := d.Token()
	return err == nil && open == json.Delim('{') && at(d, name) && opened(d)
}

func opened(d *json.Decoder) bool {
	open, err := d.Token()
	return err == nil && open == json.Delim('{')
}

// at goes to the value of a member of the object that d is in.
func at(d *json.Decoder, name string) bool {
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return false
		}
		if key == name {
			return true
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return false
		}
	}
	return false
}
