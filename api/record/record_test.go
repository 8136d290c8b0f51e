package record_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hostwarrant/hostwarrant/api/record"
	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/ledger"
)

func TestPolicyKeepsEveryField(t *testing.T) {
	got := record.Policy(&v1alpha1.LedgerPolicy{
		Roots: "roots", AnchorDigest: "anchor", RootVersion: 2, RootDigest: "root", Version: 3, Digest: "digest", ResetsUsed: []v1alpha1.ResetID{"id"},
	})
	want := ledger.Policy{
		Roots: []byte("roots"), AnchorDigest: "anchor", RootVersion: 2, RootDigest: "root", Version: 3, Digest: "digest", ResetsUsed: []string{"id"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
	for i, v := 0, reflect.ValueOf(got); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("%s is not read", v.Type().Field(i).Name)
		}
	}
	if diff := cmp.Diff(ledger.Policy{}, record.Policy(nil)); diff != "" {
		t.Errorf("no record (-want +got):\n%s", diff)
	}
}
