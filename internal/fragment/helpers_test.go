package fragment_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/internal/decision"
	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/testkit"
)

func wantReason(t *testing.T, err error, want decision.Reason) {
	t.Helper()
	got := decision.Verified
	if err != nil {
		got = decision.From(err).Reason
	}
	if got != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

// published reads a carrier of the public test data.
func published(t testing.TB, name string) *fragment.Object {
	t.Helper()
	return parse(t, publishedText(t, name))
}

func publishedText(t testing.TB, name string) []byte {
	t.Helper()
	text, err := yaml.YAMLToJSON(testkit.Corpus(t, "fragments/"+name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
