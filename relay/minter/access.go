package minter

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/hostwarrant/hostwarrant/relay/token"
)

// groups are those that the API server gives to whoever shows a token of ours.
func groups() []string { return []string{token.Bootstrappers, token.Group, "system:authenticated"} }

// autoApproved asks whether kube-controller-manager's approver would take a certificate request of the
// token's bearer by itself (k8s.io/kubernetes/pkg/controller/certificates/approver/sarapprove.go), and
// by what; "" is no. Its other permission, selfnodeclient, is for requests under the caller's own name,
// which no token has; it is asked for as well, since nobody has reason to give it to bootstrappers.
func (m *Minter) autoApproved(ctx context.Context, id string) (string, error) {
	for _, subresource := range []string{"nodeclient", "selfnodeclient"} {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: token.UserPrefix + id, Groups: groups(),
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Group: "certificates.k8s.io", Version: "*", Resource: "certificatesigningrequests", Subresource: subresource, Verb: "create",
			},
		}}
		if err := m.Client.Create(ctx, review); err != nil {
			return "", fmt.Errorf("asking who would approve the token's request: %w", err)
		}
		if review.Status.Allowed {
			return fmt.Sprintf("may create certificatesigningrequests/%s: %s", subresource, review.Status.Reason), nil
		}
	}
	return "", nil
}
