package cli

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/controller/rbac"
)

// TestReaderMayReadWhatCommandsRead: who has the ClusterRole nap-reader can run every command
// that asks a cluster and changes nothing.
func TestReaderMayReadWhatCommandsRead(t *testing.T) {
	may := map[string]bool{}
	for doc := range strings.SplitSeq(rbac.Users(), "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if role.Name != "nap-reader" || !slices.Contains(rule.Verbs, "list") || !slices.Contains(rule.Verbs, "get") {
				continue
			}
			for _, resource := range rule.Resources {
				may[strings.TrimSuffix(resource+"."+rule.APIGroups[0], ".")] = true
			}
		}
	}
	c := newFakeCluster(t)
	for name, m := range manners() {
		if m.no != "" {
			continue
		}
		args := strings.Fields(m.args)
		if m.writes {
			args = append(args, "--dry-run")
		}
		if _, errs, code := c.run(t, false, append(args, "--kubeconfig", c.kubeconfig)...); code > 2 {
			t.Errorf("nap %s ended with exit code %d: %s", name, code, errs)
		}
	}
	read := c.Read()
	if len(read) < 20 {
		t.Errorf("all commands together read %q only", read)
	}
	for _, resource := range read {
		if !may[resource] {
			t.Errorf("commands read %s, which the ClusterRole nap-reader may not", resource)
		}
	}
}
