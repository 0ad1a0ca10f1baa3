package cloud_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/controller/rbac"
	"github.com/nodeautoprovision/nap/internal/lab"
	"github.com/nodeautoprovision/nap/internal/lab/labtest"
)

// account is the user that the chart's controller is to the API server.
const account = "system:serviceaccount:nap-system:nap"

// event is what of an audit event is looked at.
type event struct {
	Verb      string
	ObjectRef *struct{ Resource, Namespace, Name, APIGroup, Subresource string }
	Response  struct{ Code int } `json:"responseStatus"`
}

// expectAllowed states that the controller of a lab has asked for nothing that the chart
// does not let it do.
func expectAllowed(t *testing.T, l *labtest.Lab) {
	t.Helper()
	audited(t, l, func(e event, p rbac.Permission) {
		if e.Response.Code == http.StatusForbidden {
			t.Errorf("the controller may not %s: %s %s/%s", p, e.Verb, e.ObjectRef.Namespace, e.ObjectRef.Name)
		}
	})
}

// audited shows each request of a lab's controller, and the permission that it takes.
func audited(t *testing.T, l *labtest.Lab, see func(event, rbac.Permission)) {
	t.Helper()
	file, err := os.Open(lab.LogFile(l.Env.Dir, "audit"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.ObjectRef == nil {
			continue // the line that is being written, or a path that is no object
		}
		o := e.ObjectRef
		see(e, rbac.Permission{Verb: e.Verb, Group: o.APIGroup, Resource: o.Resource, Subresource: o.Subresource})
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
}

// unused are permissions of the chart's roles of which there was no use yet, by what they
// permit: names and namespaces count for nothing here.
type unused map[string]rbac.Permission

// grantedTo are all permissions of a controller with these features.
func grantedTo(t *testing.T, features ...rbac.Feature) unused {
	t.Helper()
	all, err := rbac.Required("nap-system", features...)
	if err != nil {
		t.Fatal(err)
	}
	out := unused{}
	for _, p := range all {
		p.Name, p.Namespace = "", ""
		out[p.String()] = p
	}
	return out
}

// rareCases are the rows of the table of docs/permissions.md: the test that holds each
// permission.
func rareCases(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| (?:`(\\w+)`|[^|]+) \\|$").FindAllStringSubmatch(string(text), -1) {
		out[row[1]] = row[2]
	}
	if len(out) < 5 {
		t.Fatalf("docs/permissions.md has %d rows", len(out))
	}
	return out
}

// TestRareCasesOfPermissionsAreHeld: each row of docs/permissions.md is of a permission that
// the roles grant, and names a test that there is.
func TestRareCasesOfPermissionsAreHeld(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../controller/*/*_test.go", "*_test.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	var tests strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	granted := grantedTo(t, rbac.NodeOverlay, rbac.CapacityBuffer, rbac.DynamicResources, rbac.LeaderElection, rbac.SecureMetrics,
		rbac.PodDeletionCost, rbac.SchedulerConfig, rbac.DefaultNodePools, rbac.BootstrapTokens, rbac.ClusterBootstrapTokens)
	for permission, test := range rareCases(t) {
		if _, is := granted[permission]; !is {
			t.Errorf("docs/permissions.md: the roles do not grant %s", permission)
		}
		if test != "" && !strings.Contains(tests.String(), "func "+test+"(") {
			t.Errorf("docs/permissions.md: %s: there is no test %s", permission, test)
		}
	}
}
