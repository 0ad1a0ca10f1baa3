package cloud_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
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
		p := rbac.Permission{Verb: e.Verb, Group: o.APIGroup, Resource: o.Resource, Subresource: o.Subresource}
		if e.Response.Code == http.StatusForbidden {
			t.Errorf("the controller may not %s: %s %s/%s", p, e.Verb, o.Namespace, o.Name)
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
}
