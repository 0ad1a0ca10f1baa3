package armsim_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// sdkModules are the modules of the official SDK whose generated clients say which
// requests Azure takes. Go knows their versions from go.mod.
var sdkModules = []string{
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/authorization/armauthorization/v2",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/billing/armbilling",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/consumption/armconsumption",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/costmanagement/armcostmanagement/v2",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/reservations/armreservations",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/msi/armmsi",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armsubscriptions",
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources",
}

// beyondSDK are the requests that Azure takes and the SDK's clients do not make, each
// with the public page or file that describes it.
var beyondSDK = map[string]string{
	"POST /{}/oauth2/v2.0/token":                    "https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow",
	"GET /{}/v2.0/.well-known/openid-configuration": "https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc",
	"GET /common/discovery/instance":                "https://learn.microsoft.com/entra/identity-platform/authentication-national-cloud",
	"GET /metadata/endpoints":                       "https://learn.microsoft.com/azure-stack/user/azure-stack-rest-api-use",
	"POST /subscriptions/{}/providers/Microsoft.Compute/locations/{}/placementScores/{}/generate": "https://learn.microsoft.com/rest/api/computerecommender/spot-placement-scores/post",
	"GET /subscriptions/{}/providers/Microsoft.Features/providers/{}/features/{}":                 "https://learn.microsoft.com/rest/api/resources/features/get",
	"GET /bootdiagnostics/{}": "https://learn.microsoft.com/rest/api/compute/virtual-machines/retrieve-boot-diagnostics-data",
	"GET /pricesheets/{}":     "https://learn.microsoft.com/rest/api/cost-management/price-sheet/download-by-billing-profile",
	"GET /api/retail/prices":  "https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices",
	"PUT /subscriptions/{}/resourceGroups/{}/providers/Microsoft.ContainerService/managedClusters/{}/agentPools/{}/machines/{}": "https://github.com/Azure/azure-rest-api-specs/blob/main/" +
		"specification/containerservice/resource-manager/Microsoft.ContainerService/aks/preview/2026-04-02-preview/managedClusters.json",
	"GET /subscriptions/{}/providers/Microsoft.ContainerService/locations/{}/nodeImageVersions": "https://github.com/Azure/azure-rest-api-specs/blob/main/" +
		"specification/containerservice/resource-manager/Microsoft.ContainerService/aks/preview/2026-04-02-preview/managedClusters.json",
	// The addresses under which the providers put their long-running operations.
	"GET /subscriptions/{}/providers/Microsoft.Compute/locations/{}/operations/{}":          "https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations",
	"GET /subscriptions/{}/providers/Microsoft.Network/locations/{}/operations/{}":          "https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations",
	"GET /subscriptions/{}/providers/Microsoft.ContainerService/locations/{}/operations/{}": "https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations",
}

// TestRoutesAreRequestsOfTheSDK holds that the simulator serves nothing that Azure
// does not have.
func TestRoutesAreRequestsOfTheSDK(t *testing.T) {
	known := map[string][]string{} // API versions by method and path
	for _, module := range sdkModules {
		requests := sdkRequests(t, moduleDir(t, module))
		if len(requests) == 0 {
			t.Errorf("module %s makes no requests that this test can read", module)
		}
		for row, versions := range requests {
			known[row] = append(known[row], versions...)
		}
	}
	used := map[string]bool{}
	for _, r := range armtest.New(t).Server.Routes() {
		row := r.Method + " " + r.Path
		if _, made := known[strings.ToLower(row)]; made {
			continue
		}
		if _, made := known[atAnyScope(row)]; made {
			continue
		}
		if madeOfDefault(known, row) {
			continue
		}
		if beyondSDK[row] == "" {
			t.Errorf("%s: no client of the SDK makes this request, and no public source is given for it", row)
		}
		used[row] = true
	}
	for row := range beyondSDK {
		if !used[row] {
			t.Errorf("%s has a source and no route, or the SDK makes it", row)
		}
	}
}

// atAnyScope is a row whose scope stands before the last provider, as the SDK writes
// requests that work at every scope.
func atAnyScope(row string) string {
	method, path, _ := strings.Cut(strings.ToLower(row), " ")
	return method + " /{}" + path[max(0, strings.LastIndex(path, "/providers/")):]
}

// madeOfDefault says whether a request of the SDK is the row with the name "default" in the
// place of its last parameter, which is how Azure calls what there is one of. A row at any
// scope may be one at a certain scope.
func madeOfDefault(known map[string][]string, row string) bool {
	row = strings.ToLower(row)
	i := strings.LastIndex(row, "/{}")
	if i < 0 {
		return false
	}
	method, path, _ := strings.Cut(row[:i]+"/default"+row[i+len("/{}"):], " ")
	path, anyScope := strings.CutPrefix(path, "/{}")
	for request := range known {
		of, made, _ := strings.Cut(request, " ")
		if of == method && (made == path || anyScope && strings.HasSuffix(made, path)) {
			return true
		}
	}
	return false
}

// moduleDir is where the Go command keeps a module's sources.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	dir := strings.TrimSpace(string(out))
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		t.Fatalf("go list -m %s: %s", module, failed.Stderr)
	}
	if err != nil || dir == "" {
		t.Fatalf("module %s is not in the module cache: %v; fetch it with go mod download", module, err)
	}
	return dir
}

// pathParameter is one in the path of a request, as {vmName}.
var pathParameter = regexp.MustCompile(`\{[^}]*\}`)

// sdkRequests reads the generated clients of a module: every function that builds a
// request assigns its path to urlPath, names its method in a call of NewRequest and
// sets api-version. The keys are method and path in lower case, with {} for each
// parameter.
func sdkRequests(t *testing.T, dir string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	requests := map[string][]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
				if method, path := sdkRequest(f.Body); method != "" && path != "" {
					row := strings.ToLower(method + " " + pathParameter.ReplaceAllString(path, "{}"))
					requests[row] = append(requests[row], f.Name.Name)
				}
			}
		}
	}
	return requests
}

// sdkRequest is the method and the path of the request that a function builds; empty
// when it builds none.
func sdkRequest(body *ast.BlockStmt) (method, path string) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if name, ok := n.Lhs[0].(*ast.Ident); ok && name.Name == "urlPath" && n.Tok == token.DEFINE {
				if text, ok := n.Rhs[0].(*ast.BasicLit); ok {
					path, _ = strconv.Unquote(text.Value)
				}
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "NewRequest" && len(n.Args) == 3 {
				if m, ok := n.Args[1].(*ast.SelectorExpr); ok {
					method = strings.ToUpper(strings.TrimPrefix(m.Sel.Name, "Method"))
				}
			}
		}
		return true
	})
	return method, path
}
