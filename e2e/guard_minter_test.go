//go:build linux

package e2e

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// bootstrapSecret is one that the minter may create, with changes.
func bootstrapSecret(t *testing.T, change func(secret, data object)) []byte {
	t.Helper()
	data := object{
		"token-id": "hwab12", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
		"auth-extra-groups": "system:bootstrappers:hostwarrant", "expiration": ahead(9 * time.Minute),
	}
	s := object{
		"apiVersion": "v1", "kind": "Secret", "metadata": object{"namespace": "kube-system", "name": "bootstrap-token-hwab12"},
		"type": "bootstrap.kubernetes.io/token", "stringData": data,
	}
	if change != nil {
		change(s, data)
	}
	return encode(t, s)
}

// of is the value, which has that type.
func of[T any](value any) T {
	v, ok := value.(T)
	if !ok {
		panic(fmt.Sprintf("%v is of another type", value))
	}
	return v
}

// ahead is a time that far ahead, as a bootstrap token spells it.
func ahead(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }

const someUID = "01234567-89ab-cdef-0123-456789abcdef"

// handover is the Secret that hands a token to the relay, with changes.
func handover(t *testing.T, change func(secret, meta object)) []byte {
	t.Helper()
	meta := object{
		"namespace": pool, "name": "hw-token-" + someUID,
		"ownerReferences": []object{{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostRun", "name": "r", "uid": someUID}},
	}
	s := object{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "stringData": object{"token": "hwab12.0123456789abcdef"}}
	if change != nil {
		change(s, meta)
	}
	return encode(t, s)
}

func guardMinterSecrets(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-minter-secrets"
	minter := as(account("hostwarrant-minter"))
	create := slices.Concat(minter, []string{"create", "-f", "-"})
	const names, kind, group, ends = "hostwarrant-minter writes and deletes only bootstrap-token-hw", "hostwarrant-minter creates bootstrap tokens for authentication alone",
		"hostwarrant-minter gives its tokens the group system:bootstrappers:hostwarrant and no other", "a bootstrap token of hostwarrant-minter ends within ten minutes"
	named := func(name string) func(secret, data object) {
		return func(s, _ object) { of[object](s["metadata"])["name"] = name }
	}
	with := func(key, value string) func(secret, data object) {
		return func(_, data object) { data[key] = value }
	}
	without := func(key string) func(secret, data object) { return func(_, data object) { delete(data, key) } }
	w.inForce(t, policy, names, bootstrapSecret(t, named("bootstrap-token-abcdef")), create...)
	for name, c := range map[string]struct {
		change func(secret, data object)
		says   string
	}{
		"another's name":         {named("bootstrap-token-abcdef"), names},
		"a name with a tail":     {named("bootstrap-token-hwab123"), names},
		"a handover's name":      {named("hw-token-" + someUID), names},
		"another type":           {func(s, _ object) { s["type"] = "Opaque" }, kind},
		"one for signing":        {with("usage-bootstrap-signing", "true"), kind},
		"a description":          {with("description", "x"), kind},
		"without an end":         {without("expiration"), kind},
		"without groups":         {without("auth-extra-groups"), kind},
		"another group":          {with("auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token"), group},
		"one group more":         {with("auth-extra-groups", "system:bootstrappers:hostwarrant,system:bootstrappers:x"), group},
		"not to authenticate":    {with("usage-bootstrap-authentication", "false"), group},
		"an hour":                {with("expiration", ahead(time.Hour)), ends},
		"eleven minutes":         {with("expiration", ahead(11*time.Minute)), ends},
		"a year later":           {with("expiration", ahead(365*24*time.Hour)), ends},
		"no time":                {with("expiration", "never"), ends},
		"near miss: its own":     {nil, ""},
		"near miss: a minute":    {with("expiration", ahead(time.Minute)), ""},
		"near miss: in the past": {with("expiration", ahead(-time.Minute)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.says == "" {
				w.allowed(t, bootstrapSecret(t, c.change), append(create, "--dry-run=server")...)
				return
			}
			w.denied(t, policy, c.says, bootstrapSecret(t, c.change), create...)
		})
	}
	t.Run("an end that is no digits of base64", func(t *testing.T) {
		broken := bootstrapSecret(t, func(s, data object) {
			all := object{}
			for key, value := range data {
				all[key] = base64.StdEncoding.EncodeToString([]byte(of[string](value)))
			}
			all["expiration"] = base64.StdEncoding.EncodeToString([]byte("2026-12-01t12:00:00z"))
			delete(s, "stringData")
			s["data"] = all
		})
		if r := w.kubectl(t, broken, create...); r.Code == 0 || !strings.Contains(r.Stderr, policy) {
			t.Errorf("exit %d: %s", r.Code, r.Stderr)
		}
	})
	t.Run("changes and deletions", func(t *testing.T) {
		w.allowed(t, bootstrapSecret(t, nil), create...)
		w.denied(t, policy, "hostwarrant-minter creates and deletes Secrets, and changes none", nil, append(minter, "-n", "kube-system", "label", "secret", "bootstrap-token-hwab12", "a=b")...)
		foreign := bootstrapSecret(t, named("bootstrap-token-abcdef"))
		w.allowed(t, foreign, "create", "-f", "-")
		w.denied(t, policy, names, nil, append(minter, "-n", "kube-system", "delete", "secret", "bootstrap-token-abcdef")...)
		w.allowed(t, nil, append(minter, "-n", "kube-system", "delete", "secret", "bootstrap-token-hwab12")...)
		w.allowed(t, nil, "-n", "kube-system", "delete", "secret", "bootstrap-token-abcdef")
		plain := bootstrapSecret(t, func(s, _ object) { s["type"] = "Opaque" })
		w.allowed(t, plain, "create", "-f", "-")
		w.denied(t, policy, "hostwarrant-minter deletes bootstrap tokens only", nil, append(minter, "-n", "kube-system", "delete", "secret", "bootstrap-token-hwab12")...)
		w.allowed(t, nil, "-n", "kube-system", "delete", "secret", "bootstrap-token-hwab12")
	})
	t.Run("what hands tokens over", func(t *testing.T) { guardHandovers(t, w, policy, names, minter) })
}

func guardHandovers(t *testing.T, w *guardWorld, policy, names string, minter []string) {
	create := slices.Concat(minter, []string{"create", "-f", "-"})
	const owned = "hostwarrant-minter hands a token over in a Secret that belongs to its HostRun"
	owner := func(change func(object)) func(secret, meta object) {
		return func(_, meta object) { change(of[[]object](meta["ownerReferences"])[0]) }
	}
	for name, c := range map[string]struct {
		change func(secret, meta object)
		says   string
	}{
		"a host's key":        {func(_, meta object) { meta["name"] = "host-a-ssh" }, names},
		"one of another form": {func(_, meta object) { meta["name"] = "hw-token-x" }, names},
		"a bootstrap token":   {func(_, meta object) { meta["name"] = "bootstrap-token-hwab12" }, names},
		"a ServiceAccount's":  {func(s, _ object) { s["type"] = "example.com/other" }, owned},
		"nobody's":            {func(_, meta object) { delete(meta, "ownerReferences") }, owned},
		"of another run":      {owner(func(o object) { o["uid"] = strings.Replace(someUID, "0", "1", 1) }), owned},
		"of two runs": {func(_, meta object) {
			meta["ownerReferences"] = append(of[[]object](meta["ownerReferences"]), object{"apiVersion": "hostwarrant.dev/v1alpha1", "kind": "HostRun", "name": "s", "uid": strings.Replace(someUID, "0", "1", 1)})
		}, owned},
		"of no run":             {owner(func(o object) { o["kind"] = "Node" }), owned},
		"near miss: of its run": {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if c.says == "" {
				w.allowed(t, handover(t, c.change), append(create, "--dry-run=server")...)
				return
			}
			w.denied(t, policy, c.says, handover(t, c.change), create...)
		})
	}
	w.allowed(t, encode(t, object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"namespace": pool, "name": "host-z-ssh"}}), "create", "-f", "-")
	w.denied(t, policy, names, nil, append(minter, "-n", pool, "delete", "secret", "host-z-ssh")...)
	w.allowed(t, nil, "-n", pool, "delete", "secret", "host-z-ssh")
}

func guardHostRunStatus(t *testing.T, w *guardWorld) {
	const policy = "hostwarrant-hostrun-status"
	relay, minter := as(account("hostwarrant-relay")), as(account("hostwarrant-minter"))
	w.allowed(t, hostRun(t, "r-guard", nil), "create", "-f", "-")
	t.Cleanup(func() { w.allowed(t, nil, "-n", pool, "delete", "hostrun", "r-guard") })
	patch := func(who []string, sub, text string) []string {
		args := append(append([]string{}, who...), "-n", pool, "patch", "hostrun", "r-guard", "--type=merge", "-p", text)
		if sub != "" {
			args = append(args, "--subresource="+sub)
		}
		return args
	}
	condition := func(kinds ...string) string {
		var all []string
		for _, kind := range kinds {
			all = append(all, fmt.Sprintf(`{"type":%q,"status":"Unknown","reason":"X","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}`, kind))
		}
		return `{"status":{"conditions":[` + strings.Join(all, ",") + `]}}`
	}
	nonce := strings.Repeat("a", 64)
	const nobody, noID, noNonce, noJoined, onlyTokens, noProof, onlyHolds, onlyOurs = "only hostwarrant-relay and hostwarrant-minter write the status of a HostRun", "hostwarrant-relay writes no tokenID",
		"hostwarrant-relay writes no nonce", "hostwarrant-relay does not write the condition Joined", "hostwarrant-minter writes of a HostRun's status only tokenID",
		"hostwarrant-minter writes no proof", "hostwarrant-minter changes of a HostRun nothing but its finalizer", "hostwarrant-minter changes no finalizer but"
	w.inForce(t, policy, nobody, nil, patch(nil, "status", `{"status":{"attempts":1}}`)...)
	steps := []struct {
		who       []string
		sub, text string
		says      string // "": allowed
	}{
		{as("somebody"), "status", `{"status":{"tokenID":"hwab12"}}`, nobody},
		{relay, "status", `{"status":{"tokenID":"hwab12"}}`, noID},
		{relay, "status", `{"status":{"proof":{"nonce":"` + nonce + `"}}}`, noNonce},
		{relay, "status", condition("Joined"), noJoined},
		{relay, "status", condition("Delivered"), ""},
		{minter, "status", condition("Delivered", "Joined"), ""},
		{minter, "status", condition("Joined"), onlyTokens},
		{minter, "status", condition("Delivered", "Joined", "Succeeded"), onlyTokens},
		{minter, "status", `{"status":{"attempts":7}}`, onlyTokens},
		{minter, "status", `{"status":{"tokenID":"hwab12"}}`, ""},
		{minter, "status", `{"status":{"proof":{"nonce":"` + nonce + `","text":"x"}}}`, noProof},
		{minter, "status", `{"status":{"proof":{"nonce":"` + nonce + `"}}}`, ""},
		{relay, "status", `{"status":{"proof":{"text":"x","signature":"y"},"attempts":1}}`, ""},
		{minter, "status", `{"status":{"attempts":null}}`, onlyTokens}, // it would be sent again
		{relay, "status", `{"status":{"proof":null}}`, noNonce},
		{relay, "status", `{"status":{"tokenID":"hwab13"}}`, noID},
		{relay, "status", `{"status":{"tokenID":null}}`, noID},
		{relay, "status", condition("Delivered"), noJoined},
		{minter, "status", `{"status":{"proof":{"text":"z"}}}`, noProof},
		{minter, "status", `{"status":{"proof":null,"tokenID":"hwab14"}}`, ""},
		{minter, "", `{"metadata":{"finalizers":["hostwarrant.dev/token"]}}`, ""},
		{minter, "", `{"metadata":{"finalizers":["hostwarrant.dev/token","example.com/x"]}}`, onlyOurs},
		{minter, "", `{"metadata":{"labels":{"a":"b"}}}`, onlyHolds},
		{minter, "", `{"metadata":{"annotations":{"a":"b"}}}`, onlyHolds},
		{minter, "", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"u"}]}}`, onlyHolds},
		{minter, "", `{"spec":{"cancel":true}}`, onlyHolds},
		{as("somebody"), "", `{"metadata":{"labels":{"a":"b"}}}`, ""},
		{minter, "", `{"metadata":{"finalizers":null}}`, ""},
	}
	for i, s := range steps {
		if s.says == "" {
			w.allowed(t, nil, patch(s.who, s.sub, s.text)...)
			continue
		}
		w.denied(t, policy, s.says, nil, patch(s.who, s.sub, s.text)...)
		if t.Failed() {
			t.Fatalf("step %d", i)
		}
	}
}
