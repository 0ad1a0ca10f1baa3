package cli

import (
	"strings"
	"testing"
)

func TestWhatIsSaidOfOnePodIsSaidOfSeveral(t *testing.T) {
	for one, several := range map[string]string{
		"gets a place": "get a place", "is promised to node n": "are promised to node n", "waits, but not for a node": "wait, but not for a node",
	} {
		if got := severally(1, one); got != one {
			t.Errorf("of one: %q, want %q", got, one)
		}
		if got := severally(2, one); got != several {
			t.Errorf("of two: %q, want %q", got, several)
		}
	}
}

// A workload is found by each word that kubectl has for its kind; a CronJob's pods are of its
// Jobs.
func TestExplainFindsKindsByTheirWords(t *testing.T) {
	const nightly = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly, namespace: shop}\nspec:\n  schedule: 0 3 * * *\n" +
		"  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}}}\n"
	const agent = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent, namespace: shop}\nspec:\n" +
		"  selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c}]}\n"
	file := writeInput(t, nightly+agent)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"cronjob/nightly --due", 0, "CronJob shop/nightly: 1 of 1 pod waits, and it gets a place"},
		{"CronJobs.batch/shop/nightly --due", 0, "CronJob shop/nightly:"},
		{"cj/nightly --due", 0, "CronJob shop/nightly:"},
		{"jobs/nightly --due", 0, "Job shop/nightly:"},
		{"cj/nightly", 1, "no pod of a Job of CronJob shop/nightly; --due plans"},
		{"ds/agent", 1, "no pod of DaemonSet shop/agent; one of a file has no pods of its own"},
		{"rc/nightly", 1, "no pod of a replicationcontroller shop/nightly"},
	} {
		args := append([]string{"explain", "-n", "shop", "--budget", "0", "-f", file}, strings.Fields(c.args)...)
		if out, errs, code := nap.Run(t, args...); code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q in\n%s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
	for name, want := range map[string]bool{"s/n": true, "s/n-29": true, "s/n-x": false, "s/nn": false, "s/n29": false} {
		if got := isWorkload(cronJob, "s/n", "Job", name); got != want {
			t.Errorf("Job %s is of CronJob s/n: %v, want %v", name, got, want)
		}
	}
}
