package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/hostwarrant/hostwarrant/internal/drift"
	"github.com/hostwarrant/hostwarrant/manifests"
	"github.com/hostwarrant/hostwarrant/testkit"
)

// The relay may read each guard that it looks at, by name, and do nothing else with any.
func TestTheRelayMayReadEachGuard(t *testing.T) {
	texts, err := manifests.Guards()
	must(t, err)
	shipped, err := drift.Parse(texts, "hostwarrant-system")
	must(t, err)
	var want, got []string
	for _, o := range shipped {
		resource := strings.ToLower(o.Kind()) + "s"
		want = append(want, strings.Replace(resource, "policys", "policies", 1)+"/"+o.Name()+" get")
	}
	for _, rule := range relayRole(t).Rules {
		if !slices.Contains(rule.APIGroups, drift.Group) {
			continue
		}
		for _, resource := range rule.Resources {
			for _, name := range rule.ResourceNames {
				got = append(got, resource+"/"+name+" "+strings.Join(rule.Verbs, ","))
			}
			if len(rule.ResourceNames) == 0 {
				got = append(got, resource+" "+strings.Join(rule.Verbs, ","))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func relayRole(t *testing.T) rbacv1.ClusterRole {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testkit.Root(t), "manifests", "base", "rbac-relay.yaml"))
	must(t, err)
	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(string(text), -1) {
		var role rbacv1.ClusterRole
		must(t, yaml.Unmarshal([]byte(document), &role))
		if role.Kind == "ClusterRole" {
			return role
		}
	}
	t.Fatal("no ClusterRole")
	return rbacv1.ClusterRole{}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
