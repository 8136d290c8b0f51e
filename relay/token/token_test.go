package token

import (
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
)

// form is the API server's, and that of a script's warrant.
var form = regexp.MustCompile(`^hw[a-z0-9]{4}[.][a-z0-9]{16}$`)

func TestATokenIsOneOfOursAndNoOther(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		one := New()
		if !form.MatchString(one.Value()) || !IsID(one.ID) || seen[one.Value()] {
			t.Fatalf("token of id %s", one.ID)
		}
		seen[one.Value()] = true
	}
	for _, id := range []string{"", "hwabc", "hwabcde", "hwABCD", "xxabcd", "hwabcd\n", "hwab.d"} {
		if IsID(id) {
			t.Errorf("%q is an id", id)
		}
	}
}

func TestWhatTheAPIServerIsToldOfAToken(t *testing.T) {
	one, end := New(), time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	s := one.Bootstrap(end)
	if s.Namespace != "kube-system" || s.Name != "bootstrap-token-"+one.ID || s.Type != "bootstrap.kubernetes.io/token" {
		t.Errorf("%s/%s of type %s", s.Namespace, s.Name, s.Type)
	}
	want := map[string]string{
		"token-id": one.ID, "token-secret": strings.TrimPrefix(one.Value(), one.ID+"."), "expiration": "2026-12-01T12:00:00Z",
		"usage-bootstrap-authentication": "true", "auth-extra-groups": "system:bootstrappers:hostwarrant",
	}
	for key, value := range want {
		if string(s.Data[key]) != value {
			t.Errorf("%s is %q", key, s.Data[key])
		}
	}
	if len(s.Data) != len(want) {
		t.Errorf("%d keys: another usage, or a description for somebody to read", len(s.Data))
	}
}

func TestTheRelayIsHandedAToken(t *testing.T) {
	one, end := New(), time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	run := &v1alpha1.HostRun{ObjectMeta: metav1.ObjectMeta{Namespace: "pool", Name: "r", UID: "u-1"}}
	s := one.Handover(run, end)
	if s.Namespace != "pool" || s.Name != "hw-token-u-1" || s.Type != corev1.SecretTypeOpaque || !IsHandover(s.Name) || IsHandover("host-a-ssh") {
		t.Errorf("%s/%s of type %s", s.Namespace, s.Name, s.Type)
	}
	if len(s.OwnerReferences) != 1 || s.OwnerReferences[0].UID != "u-1" || s.OwnerReferences[0].Kind != "HostRun" || s.OwnerReferences[0].BlockOwnerDeletion != nil {
		t.Errorf("owners %+v", s.OwnerReferences)
	}
	other := New()
	for name, c := range map[string]struct {
		data map[string][]byte
		id   string
		now  time.Time
		want string
	}{
		"its own":               {s.Data, one.ID, end.Add(-time.Second), one.Value()},
		"at its end":            {s.Data, one.ID, end, ""},
		"of an earlier attempt": {s.Data, other.ID, end.Add(-time.Second), ""},
		"without an end":        {map[string][]byte{ValueKey: []byte(one.Value())}, one.ID, end, ""},
		"empty":                 {nil, "", end, ""},
	} {
		if got := Read(c.data, c.id, c.now); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
