package v1alpha1_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// printed is what "kubectl get -o wide" shows of an object of the shipped CustomResourceDefinition in file: "COLUMN value", with
// a "+" before those that only "wide" has, "COLUMN" alone where there is no value.
func printed(t *testing.T, file string, object map[string]any) []string {
	t.Helper()
	table, err := tableconvertor.New(readCRD(t, file).Spec.Versions[0].AdditionalPrinterColumns)
	if err != nil {
		t.Fatal(err)
	}
	got, err := table.ConvertToTable(t.Context(), &unstructured.Unstructured{Object: object}, &metav1.TableOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for i, column := range got.ColumnDefinitions {
		text := strings.ToUpper(column.Name)
		if column.Priority > 0 {
			text = "+" + text
		}
		if value := got.Rows[0].Cells[i]; value != nil {
			text += fmt.Sprint(" ", value)
		}
		all = append(all, text)
	}
	return all
}

// What a person asks first is answered by kubectl get, without a look at the YAML.
func TestColumnsAnswerWhatAPersonAsksFirst(t *testing.T) {
	const ago = "2020-01-01T00:00:00Z"
	condition := func(kind, status, reason string) any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "lastTransitionTime": ago}
	}
	object := func(name string, spec, status map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": name}, "spec": spec, "status": status}
	}
	ref := func(name string) any { return map[string]any{"name": name} }
	join := map[string]any{"hostRef": ref("host-a"), "phase": "join", "profileRef": ref("tls"), "nodeName": "pool-1"}
	for name, c := range map[string]struct {
		file   string
		object map[string]any
		want   string
	}{
		"a run that joined a node": {"hostruns", object("a", join, map[string]any{
			"shimExitCode": int64(0), "scriptExitCode": int64(0), "trailer": "Whole", "runID": "1f",
			"conditions": []any{condition("Joined", "True", "Approved"), condition("Succeeded", "True", "Succeeded")},
		}), "NAME a|HOST host-a|PHASE join|PROFILE tls|SUCCEEDED True|REASON Succeeded|SHIM 0|SCRIPT 0|+NODE pool-1|+JOINED True|+JOIN REASON Approved|+OUTPUT Whole|+RUN 1f|AGE"},
		"one whose token was stolen": {"hostruns", object("b", join, map[string]any{
			"conditions": []any{condition("Joined", "False", "ProofFailed"), condition("Succeeded", "False", "ProofFailed")},
		}), "NAME b|HOST host-a|PHASE join|PROFILE tls|SUCCEEDED False|REASON ProofFailed|SHIM|SCRIPT|+NODE pool-1|+JOINED False|+JOIN REASON ProofFailed|+OUTPUT|+RUN|AGE"},
		"one that takes no token": {"hostruns", object("c", join, map[string]any{
			"conditions": []any{condition("Succeeded", "Unknown", "Sending")},
		}), "NAME c|HOST host-a|PHASE join|PROFILE tls|SUCCEEDED Unknown|REASON Sending|SHIM|SCRIPT|+NODE pool-1|+JOINED|+JOIN REASON|+OUTPUT|+RUN|AGE"},
		"a statement that hosts lack": {"hoststatements", object("revoke-5", nil, map[string]any{
			"kind": "revoke", "serial": int64(5), "hosts": int64(4), "applied": int64(3), "refused": int64(1),
			"conditions": []any{condition("Verified", "True", "Verified"), condition("Delivered", "False", "Behind")},
		}), "NAME revoke-5|KIND revoke|SERIAL 5|HOSTS 4|APPLIED 3|REFUSED 1|VERIFIED True|+REASON Verified|DELIVERED False|SINCE AGO|AGE"},
		"one that the roots do not vouch for": {"hoststatements", object("floor-2", nil, map[string]any{
			"conditions": []any{condition("Verified", "False", "ThresholdNotMet")},
		}), "NAME floor-2|KIND|SERIAL|HOSTS|APPLIED|REFUSED|VERIFIED False|+REASON ThresholdNotMet|DELIVERED|SINCE|AGE"},
		"a policy in force": {"trustpolicies", object("cluster", nil, map[string]any{"conditions": []any{
			condition("InForce", "True", "Verified"), condition("AdmissionInPath", "False", "Drift"), condition("ObjectsVerified", "True", "Verified"), condition("LedgerIntact", "True", "Intact"),
		}}), "NAME cluster|IN FORCE True|REASON Verified|IN PATH False|+OBJECTS True|+LEDGER True|AGE"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(printed(t, "hostwarrant.dev_"+c.file+".yaml", c.object), "|")
			before, after, _ := strings.Cut(c.want, "AGO") // how long ago that was
			if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) || strings.Contains(c.want, "AGO") && strings.Contains(got, "SINCE|") {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
