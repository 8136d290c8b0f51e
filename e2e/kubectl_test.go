//go:build linux

package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hostwarrant/hostwarrant/e2e/lab"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// kubectl runs kubectl as the administrator: the checks hold for everyone.
func (i *installation) kubectl(t *testing.T, stdin []byte, args ...string) lab.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	r, err := i.cp.Kubectl(ctx, bytes.NewReader(stdin), args...)
	must(t, err)
	return r
}

// succeeds wants exit 0 and returns what was printed.
func (i *installation) succeeds(t *testing.T, stdin []byte, args ...string) lab.Result {
	t.Helper()
	r := i.kubectl(t, stdin, args...)
	if r.Code != 0 {
		t.Fatalf("kubectl %s: exit %d\n%s%s", strings.Join(args, " "), r.Code, r.Stdout, r.Stderr)
	}
	return r
}

// refused wants a denial by our webhook that says all of the given texts.
func (i *installation) refused(t *testing.T, stdin []byte, args []string, says ...string) {
	t.Helper()
	r := i.kubectl(t, stdin, args...)
	if r.Code == 0 {
		t.Fatalf("kubectl %s was admitted:\n%s%s", strings.Join(args, " "), r.Stdout, r.Stderr)
	}
	for _, text := range append([]string{"hostwarrant.dev\" denied the request: "}, says...) {
		if !strings.Contains(r.Stderr, text) {
			t.Errorf("kubectl %s does not say %q:\n%s", strings.Join(args, " "), text, r.Stderr)
		}
	}
}

// remove deletes an object when the test ends, whatever holds it.
func (i *installation) remove(t *testing.T, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		i.kubectl(t, nil, append([]string{"patch", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`}, args...)...)
		i.deleted(t, args...)
	})
}

// deleted deletes an object, if it is there, as soon as the ledger holds its serial.
func (i *installation) deleted(t *testing.T, args ...string) {
	t.Helper()
	var r lab.Result
	eventually(t, "the ledger to hold what is deleted", func() bool {
		r = i.kubectl(t, nil, append([]string{"delete", "--ignore-not-found"}, args...)...)
		return !strings.Contains(r.Stderr, "LedgerPending")
	})
	if r.Code != 0 {
		t.Fatalf("kubectl delete %s: exit %d\n%s", strings.Join(args, " "), r.Code, r.Stderr)
	}
}

// eventually polls until done says so.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	testkit.Eventually(t, stepLimit, what, done)
}

// get fetches a page of a health server.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	must(t, err)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	must(t, answer.Body.Close())
	return answer.StatusCode, string(body)
}

// ownLab is a lab with a control plane that the test does not share, for what would disturb others.
func ownLab(t *testing.T, o lab.ControlPlaneOptions) (context.Context, *lab.Lab, *lab.ControlPlane) {
	t.Helper()
	ctx, l := shared.OwnLab(t)
	cp, err := l.StartControlPlane(ctx, o)
	must(t, err)
	return ctx, l, cp
}
