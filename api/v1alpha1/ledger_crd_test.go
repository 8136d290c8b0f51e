package v1alpha1_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestLedgerHoldsOneWellFormedRecord: a record that readers take in two ways is no record.
func TestLedgerHoldsOneWellFormedRecord(t *testing.T) {
	faults := crdFaults(t, "hostwarrant.dev_ledgers.yaml")
	digest := "sha256:" + strings.Repeat("0a", 32)
	policy := map[string]any{"roots": "k\n", "anchorDigest": digest, "rootVersion": int64(1), "version": int64(3), "digest": digest}
	profile := map[string]any{"serial": int64(0), "digest": digest}
	ledger := func(name string, spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "Ledger", "metadata": map[string]any{"name": name}, "spec": spec}
	}
	with := func(m map[string]any, field string, value any) map[string]any {
		m = maps.Clone(m)
		if m[field] = value; value == nil {
			delete(m, field)
		}
		return m
	}
	ids := func(n int) []any {
		var list []any
		for i := range n {
			list = append(list, fmt.Sprint("reset-", i))
		}
		return list
	}
	ofPolicy := func(field string, value any) map[string]any {
		return ledger("policy", map[string]any{"policy": with(policy, field, value)})
	}
	ofProfile := func(field string, value any) map[string]any {
		return ledger("profile.tls", map[string]any{"profile": with(profile, field, value)})
	}
	hex := strings.Repeat("0a", 32)
	mark := map[string]any{"version": int64(0), "digest": hex, "bytes": hex}
	slots := func(marks map[string]any) map[string]any {
		return map[string]any{"slots": map[string]any{"namespace": "pay", "bundle": "redis", "marks": marks}}
	}
	first := "slots." + hex[:32] + ".0"
	ofSlot := func(field string, value any) map[string]any {
		return ledger(first, slots(map[string]any{"base/redis-base": with(mark, field, value)}))
	}
	many := func(n int) map[string]any {
		marks := map[string]any{}
		for i := range n {
			marks[fmt.Sprint("base/x", i)] = mark
		}
		return ledger(first, slots(marks))
	}
	for name, c := range map[string]struct {
		object map[string]any
		says   string
	}{
		"a slot":                         {ofSlot("reset", hex), ""},
		"the number 12 of slots":         {ledger("slots."+hex[:32]+".12", slots(map[string]any{"rules/base/r": mark})), ""},
		"2000 slots":                     {many(2000), ""},
		"2001 slots":                     {many(2001), "must have at most 2000"},
		"no slots":                       {many(0), "should have at least 1 properties"},
		"slots under a profile's name":   {ledger("profile.tls", slots(map[string]any{"base/x": mark})), "a ledger of policies is named"},
		"slots without a number":         {ledger("slots."+hex[:32], slots(map[string]any{"base/x": mark})), "a ledger of policies is named"},
		"a profile under a slot's name":  {ledger(first, map[string]any{"profile": profile}), "a ledger of policies is named"},
		"a slot's version below 0":       {ofSlot("version", int64(-1)), "greater than or equal to 0"},
		"a slot's version of 16 digits":  {ofSlot("version", int64(1000000000000000)), "less than or equal to"},
		"a slot's digest with its kind":  {ofSlot("digest", digest), "may not be more than 64"},
		"a slot without bytes":           {ofSlot("bytes", nil), "bytes: Required"},
		"policies":                       {ofPolicy("rootDigest", digest), ""},
		"resets and lists":               {ofPolicy("resetsUsed", ids(512)), ""},
		"a profile":                      {ofProfile("reset", "tls/3/"+digest), ""},
		"the highest serial":             {ofProfile("serial", int64(999999999999999)), ""},
		"a profile with dots":            {ledger("profile.policy.x", map[string]any{"profile": profile}), ""},
		"neither":                        {ledger("policy", map[string]any{}), "exactly one of policy, profile and slots"},
		"both":                           {ledger("policy", map[string]any{"policy": policy, "profile": profile}), "exactly one of policy, profile and slots"},
		"a policy under a profile's":     {ledger("profile.tls", map[string]any{"policy": policy}), "a ledger of policies is named"},
		"a profile under the policy's":   {ledger("policy", map[string]any{"profile": profile}), "a ledger of policies is named"},
		"a profile without a name":       {ledger("profile.", map[string]any{"profile": profile}), "a ledger of policies is named"},
		"another name":                   {ledger("tls", map[string]any{"profile": profile}), "a ledger of policies is named"},
		"a serial below 0":               {ofProfile("serial", int64(-1)), "greater than or equal to 0"},
		"a serial of 16 digits":          {ofProfile("serial", int64(1000000000000000)), "less than or equal to"},
		"no serial":                      {ofProfile("serial", nil), "serial: Required"},
		"a digest in upper case":         {ofProfile("digest", strings.ToUpper(digest)), "should match"},
		"a digest that is too long":      {ofProfile("digest", digest+"0"), "may not be more than 71"},
		"no digest":                      {ofProfile("digest", nil), "digest: Required"},
		"a reset of 513 characters":      {ofProfile("reset", strings.Repeat("x", 513)), "may not be more than 512"},
		"an anchor digest of other kind": {ofPolicy("anchorDigest", "sha512:"+strings.Repeat("0", 64)), "should match"},
		"no roots":                       {ofPolicy("roots", nil), "roots: Required"},
		"roots over 64 KiB":              {ofPolicy("roots", strings.Repeat("k", 65537)), "may not be more than 65536"},
		"a root version of 0":            {ofPolicy("rootVersion", int64(0)), "greater than or equal to 1"},
		"a policy version of 0":          {ofPolicy("version", int64(0)), "greater than or equal to 1"},
		"one reset more than fits":       {ofPolicy("resetsUsed", ids(513)), "must have at most 512 items"},
		"a list that is no digest":       {ofPolicy("renderedSigners", []any{"ssh-ed25519 AAAA"}), "should match"},
	} {
		t.Run(name, func(t *testing.T) {
			got := faults(c.object, nil)
			if c.says == "" && got != "" || !strings.Contains(got, c.says) {
				t.Errorf("faults %q; want one that says %q", got, c.says)
			}
		})
	}
}
