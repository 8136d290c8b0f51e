package admit

import (
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/hostwarrant/hostwarrant/internal/object"
	"github.com/hostwarrant/hostwarrant/internal/verify"
)

// VerdictAnnotation tells people what was thought of an object when it was written. Nobody decides
// by it: whoever may write the object may write it too.
const VerdictAnnotation = "hostwarrant.dev/verdict"

// note returns the steps that write the verdict, none where it stands already or where nothing is
// judged anew.
func note(req *admissionv1.AdmissionRequest, s verify.Snapshot, signers []string) []operation {
	raw, err := filled(req.Object.Raw, signers)
	if err != nil {
		return nil
	}
	asked := request(req)
	asked.Object = raw
	a := verify.Admission(s, asked)
	meta, err := object.ParseMeta(raw)
	if err != nil || a.Outcome == verify.OutcomeExempt {
		return nil
	}
	verdict := fmt.Sprintf("%s %s", a.Outcome, a.Decision.Reason)
	if s.Policy != nil {
		verdict += fmt.Sprintf(", policy version %d", s.Policy.Version)
	}
	if meta.Annotations[VerdictAnnotation] == verdict {
		return nil
	}
	var steps []operation
	if meta.Annotations == nil {
		steps = append(steps, operation{"add", "/metadata/annotations", map[string]string{}})
	}
	return append(steps, operation{"add", "/metadata/annotations/hostwarrant.dev~1verdict", verdict})
}

// filled is the object as it will be with the signers in it.
func filled(raw []byte, signers []string) ([]byte, error) {
	if len(signers) == 0 {
		return raw, nil
	}
	var top, spec map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(top["spec"], &spec); err != nil {
		return nil, err
	}
	var err error
	if spec["trustedSigners"], err = json.Marshal(signers); err != nil {
		return nil, err
	}
	if top["spec"], err = json.Marshal(spec); err != nil {
		return nil, err
	}
	return json.Marshal(top)
}
