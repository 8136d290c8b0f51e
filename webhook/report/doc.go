// Package report shows the verdicts on stored objects in a cluster-wide report of the kind that the
// cluster knows: OpenReports' ClusterReport, or the policy working group's ClusterPolicyReport.
//
// It lists what does not verify, at most 500 objects, and then how many more. It is for people and
// their dashboards; nobody decides by it. Where neither kind is installed, nothing is written.
//
// Specification: docs/spec/rejudgement.md.
package report
