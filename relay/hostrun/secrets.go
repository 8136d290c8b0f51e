package hostrun

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hostwarrant/hostwarrant/api/v1alpha1"
	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/warrant"
	"github.com/hostwarrant/hostwarrant/relay/judge"
)

const paramSecretPrefix = "KPSSH_SECRET_"

// joinSecret reads the Secret of spec.secretRef; nil where the run names none.
func (r *Reconciler) joinSecret(ctx context.Context, run *v1alpha1.HostRun) (map[string][]byte, *refusal, error) {
	if run.Spec.SecretRef == nil {
		return nil, nil, nil
	}
	if refused := refusesHandover(run.Spec.SecretRef.Name); refused != nil {
		return nil, refused, nil
	}
	return r.readSecret(ctx, run.Namespace, run.Spec.SecretRef.Name, "the values of spec.secretRef")
}

// readSecret reads a Secret of the run's namespace, by name. what says what it is for.
func (r *Reconciler) readSecret(ctx context.Context, namespace, name, what string) (map[string][]byte, *refusal, error) {
	return ReadSecret(ctx, r.Reader, namespace, name, what)
}

// ReadSecret reads a Secret by name. what says what it is for.
func ReadSecret(ctx context.Context, reader client.Reader, namespace, name, what string) (map[string][]byte, *judge.Refusal, error) {
	var secret corev1.Secret
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &secret)
	if name == "" || apierrors.IsNotFound(err) {
		return nil, refuse(reasonSecretNotFound, fmt.Sprintf("there is no Secret %q in namespace %q with %s", name, namespace, what)), nil
	}
	// check: NamespaceRefused: a run in a namespace that was not given to the relay is tried for ever
	if apierrors.IsForbidden(err) {
		return nil, refuse(string(decision.NamespaceRefused), fmt.Sprintf("the relay may not read Secrets in namespace %q: install manifests/components/host-namespace there", namespace)), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading Secret %q: %w", name, err)
	}
	return secret.Data, nil, nil
}

// addSecrets adds a parameter for each key of the Secret, named as karpenter-provider-ssh does. The
// error never holds a value.
func addSecrets(values map[string]string, w *warrant.Warrant, secret map[string][]byte) error {
	// check: ParamUndeclared: a secret handed to a script whose author said nothing of it
	if len(secret) > 0 && w == nil {
		return decision.Errorf(decision.ParamUndeclared, "secretRef gives values only to parameters that a warrant declares secret, and the script has no warrant").
			At("spec.secretRef").Try("hostwarrant sign -i FILE --key KEY --serial N --target T --param \"KPSSH_SECRET_… required secret …\"")
	}
	for _, key := range slices.Sorted(maps.Keys(secret)) {
		name := paramSecretPrefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(key))
		// check: ParamUndeclared: a secret handed to a script that nobody declared it for
		if p, ok := w.Declared(name); !ok || !p.Secret {
			return decision.Errorf(decision.ParamUndeclared, "the Secret's key %.80q is %.80s, which the warrant does not declare secret", key, name).
				At("spec.secretRef").Try("name a Secret without it, or declare it with a param line and sign again")
		}
		// check: ParamInvalid: of two keys under one name, the one that nobody meant
		if _, taken := values[name]; taken {
			return decision.Errorf(decision.ParamInvalid, "two keys of the Secret are %.80s", name).At("spec.secretRef").Try("rename one of them")
		}
		values[name] = string(secret[key])
	}
	return nil
}

// secretValues are the values of the parameters that must not show: those of the join token and of
// whatever the warrant declares secret.
func secretValues(values map[string]string, w *warrant.Warrant) []string {
	if w == nil {
		w = new(warrant.Warrant) // which declares the nine names alone
	}
	var secrets []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if p, ok := w.Declared(name); ok && p.Secret && values[name] != "" {
			secrets = append(secrets, values[name])
		}
	}
	return secrets
}
