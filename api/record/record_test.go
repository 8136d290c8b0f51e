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

func TestASlotMarkKeepsEveryField(t *testing.T) {
	got := record.SlotMark(v1alpha1.LedgerSlotMark{Version: 3, Digest: "digest", Bytes: "bytes", Reset: "not read"})
	if want := (ledger.SlotMark{Version: 3, Digest: "digest", Bytes: "bytes"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestASlotIsTheHighestOfItsRecords(t *testing.T) {
	of := func(key string, version int64, reset v1alpha1.ResetID) *v1alpha1.LedgerSlots {
		return &v1alpha1.LedgerSlots{Marks: map[string]v1alpha1.LedgerSlotMark{key: {Version: version, Reset: reset}}}
	}
	slot := ledger.Slot{Class: "base", Name: "x"}
	records := []*v1alpha1.LedgerSlots{of("base/x", 3, "r"), of("base/x", 5, ""), of("base/x", 4, ""), of("base/y", 9, "")}
	if m, known := record.Slot(records, slot); !known || m.Version != 5 {
		t.Errorf("%+v, %v", m, known)
	}
	if m, known := record.Slot(records, ledger.Slot{Class: "rules/base", Name: "x"}); known || m.Version != 0 {
		t.Errorf("another kind's: %+v, %v", m, known)
	}
	if !record.HasProfiles(records) || record.HasProfiles([]*v1alpha1.LedgerSlots{of("rules/base/x", 1, "")}) || record.HasProfiles(nil) {
		t.Error("a slot of a ContainerProfile is not told from others")
	}
	if !record.SlotReset(records[0], "r") || record.SlotReset(records[0], "s") || record.SlotReset(records[1], "r") {
		t.Error("resets are mixed up")
	}
}
