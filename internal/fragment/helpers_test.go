package fragment_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/internal/fragment"
	"github.com/hostwarrant/hostwarrant/testkit"
)

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
