package policies

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// What is installed and not compared with would be switched off unnoticed.
func TestGuardsAreThoseOfTheKustomization(t *testing.T) {
	text, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var k struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal(text, &k); err != nil {
		t.Fatal(err)
	}
	carried, err := Guards()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(carried, "\n")
	if len(k.Resources) != len(carried) {
		t.Errorf("the kustomization lists %d files, and %d are carried", len(k.Resources), len(carried))
	}
	for _, name := range k.Resources {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(all, string(file)) {
			t.Errorf("%s is installed, and not carried", name)
		}
	}
}
