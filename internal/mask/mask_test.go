package mask

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	jwt   = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJuYXAifQ.c2lnbmF0dXJl-_x"
	block = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nc3dvcmRmaXNo\nAB+/=\n-----END RSA PRIVATE KEY-----"
)

// masked is a text, what must not be in it any more, and what must be.
type masked struct {
	text  string
	gone  []string
	stays []string
}

func (m masked) check(t *testing.T, got string) {
	t.Helper()
	for _, secret := range m.gone {
		if strings.Contains(got, secret) {
			t.Errorf("%q is in %q", secret, got)
		}
	}
	for _, text := range m.stays {
		if !strings.Contains(got, text) {
			t.Errorf("%q is not in %q", text, got)
		}
	}
	if len(m.gone) > 0 && !strings.Contains(got, Mask) {
		t.Errorf("nothing stands for the secret in %q", got)
	}
	if again := Text(got); again != got {
		t.Errorf("%q became %q when it was masked again", got, again)
	}
}

func list(texts ...string) []string { return texts }

func TestTextMasksSecretsByTheirName(t *testing.T) {
	for _, m := range []masked{
		{`{"password":"herring","name":"y"}`, list("herring"), list(`{"password":"***","name":"y"}`)},
		{`{"clientSecret": "x1", "name": "y"}`, list("x1"), list(`"clientSecret": "***", "name": "y"`)},
		{`{"client_secret":"correct horse, \"battery\" staple\\","name":"y"}`, list("correct", "horse", "battery", "staple"), list(`"name":"y"`)},
		{`msg="{\"password\":\"herring\",\"name\":\"y\"}"`, list("herring"), list(`\"password\":\"***\",\"name\":\"y\"`)},
		{`got \"password\":\"tuna fish\",\"name\":\"y\"`, list("tuna", "fish"), list(`\"name\":\"y\"`)},
		{`"{\"a\":\"{\\\"password\\\":\\\"tuna\\\\\\\"fish\\\",\\\"name\\\":\\\"y\\\"}\",\"b\":1}"`, list("tuna", "fish"), list(`\\\"name\\\":\\\"y\\\"`, `\"b\":1`)},
		{`{"password":123456,"name":"y"}`, list("123456"), list(`"name":"y"`)},
		{`{&quot;password&quot;:&quot;herring&quot;,&quot;name&quot;:1}`, list("herring"), list("name")},
		{`{"passwords":["one two","three"],"names":["y"]}`, list("one", "two", "three"), list(`"names":["y"]`)},
		{"password: tuna fish\nname: y", list("tuna", "fish"), list("password: ***\nname: y")},
		{"a:\n  - password: 'it''s fish'\n    name: y", list("it", "fish"), list("name: y")},
		{"data:\n  customData: |\n    #!/bin/sh\n    herring\n\n    more\n  name: y", list("herring", "more", "/bin/sh"), list("customData: |\n    ***\n  name: y")},
		{"tokens:\n- herring\n- sprat\nname: y", list("herring", "sprat"), list("name: y")},
		{"password:\n  herring\nname: y", list("herring"), list("name: y")},
		{"password: \"tuna\n  fish\"\nname: y", list("tuna", "fish"), list("name: y")},
		{`{"note":"password: tuna fish\nname: y"}`, list("tuna", "fish"), list("name: y")},
		{"level=info token=abc user=y", list("abc"), list("level=info", "user=y")},
		{"cannot read token: abc of y", list("abc"), list("of y")},
		{"token: abc", list("abc"), list("token: ***")},
		{"read many token: abc of y", list("abc"), list("of y")},
		{"any token=abc, no password:abc, any \"token\": \"abc\"", list("abc"), nil},
		{"--token abc --name y", list("abc"), list("--name y")},
		{"--password=abc --name y", list("abc"), list("--name y")},
		{"export AZURE_CLIENT_SECRET=abc.def~", list("abc.def"), list("AZURE_CLIENT_SECRET=***")},
		{"client-key-data: c3dvcmQ=\nname: y", list("c3dvcmQ"), list("name: y")},
		{"client-certificate-data: c3dvcmQ=\nname: y", list("c3dvcmQ"), list("name: y")},
		{"the account key: abc== of y", list("abc"), list("of y")},
		{`env: [{"name":"DB_PASSWORD","value":"tuna fish"},{"name":"b","value":"y"}]`, list("tuna", "fish"), list(`"DB_PASSWORD"`, `"value":"y"`)},
		{"- name: DB_PASSWORD\n  value: tuna fish\n- name: b\n  value: y", list("tuna", "fish"), list("value: y")},
		{`{"token":{"value":"abc","name":"y"}}`, list("abc"), list(`"name":"y"`)},
		{`{"auths":{"y.azurecr.io":{"auth":"bWU6cHc="}}}`, list("bWU6cHc"), list("y.azurecr.io")},
		{`spec["password"] = "abc" # y`, list("abc"), list("# y")},
		{"password := `a bc`, y", list("a bc"), list(", y")},
		{"DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=YWJj+/==;EndpointSuffix=core.windows.net", list("YWJj"),
			list("AccountName=acc", "EndpointSuffix=core.windows.net")},
		{"Endpoint=sb://bus.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=YWJj=;EntityPath=y", list("YWJj"),
			list("bus.servicebus.windows.net", "SharedAccessKeyName=root", "EntityPath=y")},
		{"BlobEndpoint=https://x/;SharedAccessSignature=sv=2024&sig=YWJj%3D", list("YWJj"), list("BlobEndpoint=https://x/")},
		{"https://acc.blob.core.windows.net/c/b?sv=2024-11-04&sig=ab%2Bc%3D&se=2026", list("ab%2Bc"), list("?sv=2024-11-04&sig=***&se=2026")},
		{`"https://acc.blob.core.windows.net/c/b?sv=1\u0026sig=ab%2Bc%3D\u0026se=2"`, list("ab%2Bc"), list(`\u0026sig=***\u0026se=2`)},
		{`\"https://acc.blob.core.windows.net/c/b?sv=1\\u0026sig=ab%2Bc%3D\\u0026se=2\"`, list("ab%2Bc"), list(`\\u0026se=2`)},
		{"https://acc.blob.core.windows.net/c/b?sv=1&amp;sig=ab%2Bc%3D&amp;se=2", list("ab%2Bc"), list("&amp;se=2")},
		{"https://y/login?to=https%3A%2F%2Facc%2Fb%3Fsig%3Dabc%26se%3D2", list("abc"), list("https://y/login", "%26se%3D2")},
		{"https://f.azurewebsites.net/api/t?code=ab-c_d==&scope=y", list("ab-c_d"), list("&scope=y")},
		{"https://y/?password=abc&name=b", list("abc"), list("&name=b")},
	} {
		m.check(t, Text(m.text))
	}
}

func TestTextMasksSecretsByTheirForm(t *testing.T) {
	quoted, err := json.Marshal(block)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(quoted))
	if err != nil {
		t.Fatal(err)
	}
	inBlock := list("c3dvcmRmaXNo", "AB+/=", "Proc-Type")
	for _, m := range []masked{
		{"token abcdef.0123456789abcdef here", list("0123456789abcdef", "abcdef."), list("token *** here")},
		{`{"m":"a\nabcdef.0123456789abcdef\tb"}`, list("0123456789abcdef"), list(`a\n***\tb`)},
		{"got " + jwt + ", y", list("eyJ", "c2lnbmF0dXJl"), list("got ***, y")},
		{`{"m":"\n` + jwt + `"}`, list("eyJ"), list(`"m"`)},
		{"Authorization: Bearer abc\nHost: y", list("abc"), list("Authorization: Bearer ***\nHost: y")},
		{"authorization: abc def\nHost: y", list("abc", "def"), list("Host: y")},
		{`{"Authorization":["Bearer abc"],"Host":["y"]}`, list("abc"), list(`"Host":["y"]`)},
		{"map[Authorization:[Bearer abc] Host:[y]]", list("abc"), list("Host:[y]")},
		{`curl -H "Authorization: Bearer abc" https://y`, list("abc"), list("https://y")},
		{`curl -H 'Authorization: Basic YWJj' https://y`, list("YWJj"), list("https://y")},
		{"Proxy-Authorization: Digest username=\"me\", response=\"abc\"\nHost: y", list("abc"), list("Host: y")},
		{"sent Bearer opaque to y", list("opaque"), list("to y")},
		{"Basic bWU6cHc= of y", list("bWU6cHc"), list("of y")},
		{block + "\nafter", inBlock, list("***\nafter")},
		{"key " + string(quoted) + ", after", inBlock, list(`key "***", after`)},
		{"key " + string(twice) + ", after", inBlock, list(", after")},
		{"before: -----BEGIN PRIVATE KEY-----\nc3dvcmRmaXNo\nAB+/=", list("c3dvcmRmaXNo", "AB+/="), list("before: ***")},
		{"c3dvcmRmaXNo\nAB+/=\n-----END PRIVATE KEY-----\nafter", list("c3dvcmRmaXNo", "AB+/="), list("***\nafter")},
		{"-----BEGIN CERTIFICATE-----\nMIIC\n-----END CERTIFICATE-----", list("MIIC"), nil},
		{"ca: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t, y", list("LS0t"), list(", y")},
		{"key " + strings.Repeat("Ab+/", 21) + "Ab== of y", list("Ab+/"), list("of y")},
		{"secret abc8Q~" + strings.Repeat("a", 34) + " of y", list("8Q~"), list("of y")},
	} {
		m.check(t, Text(m.text))
	}
}

// What is no secret is told as it is.
func TestTextLeavesWhatIsNoSecret(t *testing.T) {
	for _, text := range []string{
		"", "***", "nothing secret here, Standard_D4s_v5",
		"/subscriptions/0b1f6471-0000-4000-8000-000000000002/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/aks-x",
		"azure:///subscriptions/0b1f6471-0000-4000-8000-000000000002/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/aks-x",
		"mcr.microsoft.com/aks/nap:v1.2.3@sha256:" + strings.Repeat("0123456789abcdef", 4),
		"localhost:5000/nap@sha256:" + strings.Repeat("0123456789abcdef", 4),
		"oci://localhost:5000/nap@sha256:" + strings.Repeat("0123456789abcdef", 4),
		"docker://sha256:" + strings.Repeat("0123456789abcdef", 4), "containerd://" + strings.Repeat("0123456789abcdef", 4),
		"commit 36418a4b7b0b4d4b8d1f64710000400080000000", "uid: 0b1f6471-0000-4000-8000-000000000002",
		`{"tokenExpiry":"2026-11-24T02:37:05Z","token":"","password":null,"automountServiceAccountToken":false}`,
		"AZURE_FEDERATED_TOKEN_FILE=/var/run/secrets/azure/tokens/azure-identity-token", "secretName: nap-tls", "SharedAccessKeyName=root",
		"the bootstrap tokens: secrets is forbidden: User \"system:serviceaccount:nap-system:nap\" cannot list resource \"secrets\"",
		"reading the kubeconfig: yaml: line 3: found character that cannot start any token: choose another with --kubeconfig or --context",
		"it has no token: sign in, or give one", "failed to list *v1.Secret: the server has no more of them", "key: karpenter.sh/nodepool", "get a token: AADSTS700016: no application",
		"DefaultAzureCredential: failed to acquire a token.\nAttempted credentials:\n\tEnvironmentCredential: missing environment variable AZURE_TENANT_ID\n" +
			"\tWorkloadIdentityCredential: no client ID specified. Check pod configuration or set ClientID in the options\n" +
			"\tManagedIdentityCredential: managed identity timed out\n\tAzureCLICredential: Azure CLI not found on path",
		"credentials:\n  name: y\n", "secret:\n  secretName: y\n",
		"https://management.azure.com:443/subscriptions?api-version=2025-05-01", "http://proxy:3128, http://proxy:3129; http://[::1]:80.",
		"Get \"https://10.0.0.1:443/api\": dial tcp 10.0.0.1:443: connect: connection refused", "jane@contoso.com", "git@github.com:nap/nap.git",
		"goroutine 1:\n\tsigs.k8s.io/karpenter@v1.8.0/pkg/a.go:12 +0x1\n\tgithub.com/a/b@v0.0.0-20260101000000-0123456789ab/c.go:1",
		`{"stack":"a.go:1\n\tsigs.k8s.io/karpenter@v1.8.0/pkg/a.go:12\nk8s.io/api@v0.35.0/b.go:3"}`,
		"https://modules.example.com/github.com/a/b/@v/v1.2.3.info", "https://cdn.example.com/npm/a@1.2.3/b.js",
		"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDZ me@host", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----",
		"open /run/token: no such file or directory", "load file \"/etc/a-token\": couldn't get version/kind; json parse error",
		"load file \"/etc/password\": yaml: line 2: no", "read ./secret: is a directory",
		"bearer token is missing", `WWW-Authenticate: Bearer authorization_uri="https://login.microsoftonline.com/x"`, "basic authentication",
		"noProxy: localhost,10.0.0.0/8", "httpProxy: http://proxy:3128", "{\"@type\": \"x\", \"passed\": 3, \"compass\": 4}",
		"password: \nname: y", "unclosed \"quote\nand 'another", `back\slash \d \`, "%", "%2", "%zz", "&", "\\u00", "é@", "@", "a@", "://", "http://@x",
	} {
		if got := Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// addresses are addresses of proxies, with the parts of each that are secret.
func addresses() []masked {
	return []masked{
		{"http://usr7:pw1@proxy:3128", list("usr7", "pw1"), list("http://***@proxy:3128")},
		{"HTTPS://usr7:pw1@proxy:3128/", list("usr7", "pw1"), list("HTTPS://***@proxy:3128/")},
		{"usr7:pw1@proxy:3128", list("usr7:", "pw1"), list("***@proxy:3128")},
		{"//usr7:pw1@proxy:3128", list("usr7:", "pw1"), list("@proxy:3128")},
		{"http://tok3n@proxy:3128", list("tok3n"), list("http://***@proxy:3128")},
		{"tok3n@proxy:3128", list("tok3n"), list("***@proxy:3128")},
		{"http://usr7:p@s1s@proxy:3128", list("usr7:", "p@s", "s1s"), list("@proxy:3128")},
		{"usr7:p@s1s@proxy:3128", list("usr7:", "p@s", "s1s"), list("@proxy:3128")},
		{"http://usr7:p/w1@proxy:3128", list("usr7:", "p/w1", "w1"), list("@proxy:3128")},
		{"http://usr7:1/w1@proxy:3128", list("usr7:", "w1"), list("@proxy:3128")},
		{"http://corp.usr7:1/w1@proxy:3128", list("corp", "w1"), list("@proxy:3128")},
		{"usr7:p/w1@proxy:3128", list("usr7:", "w1"), list("@proxy:3128")},
		{"http://usr7:p:w1@proxy:3128", list("usr7:", "w1"), list("@proxy:3128")},
		{"http://usr7:p#w1@proxy:3128", list("usr7:", "w1"), list("@proxy:3128")},
		{"http://usr7:p?w1@proxy:3128", list("usr7:", "w1"), list("@proxy:3128")},
		{"http://usr7:p?x#/:w@1@proxy:3128", list("usr7:", "?x", "w@1"), list("@proxy:3128")},
		{"http://usr7:p%40w1%2F%zz@proxy:3128", list("usr7:", "w1", "zz"), list("@proxy:3128")},
		{"http://usr7:p w1 x@proxy:3128", list("usr7:", "w1", " x"), list("@proxy:3128")},
		{"http://usr7:1 w1@proxy:3128", list("usr7:", "w1"), list("@proxy:3128")},
		{"usr7:p w1 x@proxy:3128", list("usr7:", "w1", " x"), list("@proxy:3128")},
		{"usr7:p w1:x@proxy:3128", list("usr7:", "w1", ":x"), list("@proxy:3128")},
		{"http://usr7:p@s w1@proxy", list("usr7:", "p@s", "w1"), list("@proxy")},
		{"http://usr7:pw1@[fd00::1]:3128", list("usr7:", "pw1"), list("@[fd00::1]:3128")},
		{"http://:pw1@proxy:3128", list("pw1"), list("@proxy:3128")},
		{"http://usr7:pw1@p1:1,http://you:pw2@p2:2", list("usr7:", "pw1", "you", "pw2"), list("http://***@p1:1,http://***@p2:2")},
		{"http://usr7:pw1@p1:1 HTTP://p2:2; https://tok3n@p3", list("usr7:", "pw1", "tok3n"), list("@p1:1 HTTP://p2:2; https://***@p3")},
		{"usr7:pw1@p1:1,you:pw2@p2:2", list("usr7:", "pw1", "you", "pw2"), list("p2:2")},
	}
}

func TestAddressMasksUserAndPassword(t *testing.T) {
	for _, m := range append(addresses(),
		masked{"", nil, list("")},
		masked{"proxy:3128", nil, list("proxy:3128")},
		masked{"http://proxy:3128", nil, list("http://proxy:3128")},
		masked{"http://p1:1,p2:2", nil, list("http://p1:1,p2:2")},
		masked{"http://jane@proxy", list("jane"), list("http://***@proxy")},
		masked{"jane@proxy", list("jane"), list("***@proxy")},
		masked{`http://usr7:p"w1\"x@proxy:3128`, list("usr7", "w1", "x@"), list("http://***@proxy:3128")},
		masked{"http://proxy:3128/?sig=abc", list("abc"), list("http://proxy:3128/?sig=")},
		masked{"usr7:pw1@p1:1,you:pw2@p2:2", list("usr7", "pw"), list("***@p1:1,***@p2:2")},
	) {
		m.check(t, Address(m.text))
	}
}

// TestTextMasksAddresses: in whatever they stand, and as values of any form.
func TestTextMasksAddresses(t *testing.T) {
	for _, a := range addresses() {
		raw, err := json.Marshal(map[string]string{"HTTP": a.text, "name": "y"})
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal("read " + string(raw))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			a.text, string(raw), string(again), "httpProxy: " + a.text + "\nname: y", "HTTPS_PROXY=" + a.text, fmt.Sprintf("parse %q: y", a.text),
		} {
			masked{text, a.gone, nil}.check(t, Text(text))
		}
	}
	for _, m := range []masked{
		{"dial http://usr7:pw1@proxy:3128: refused", list("usr7:", "pw1"), list("dial http://***@proxy:3128: refused")},
		{"dial usr7:pw1@proxy:3128: refused", list("usr7:", "pw1"), list("dial ***@proxy:3128: refused")},
		{`parse "http://usr7:p/w1@proxy": invalid port ":p" after host`, list("usr7:", "w1", `":p"`), list("after host")},
		{`{"error":"parse \"http://usr7:p/w1@proxy\": invalid port \":p\" after host"}`, list("usr7:", "w1", `":p`), list("after host")},
		{"2026-11-24T02:37:05Z dial tok3n@proxy:3128", list("tok3n"), list("2026-11-24T02:37:05Z dial")},
		{"a proxy http://usr7:herri", list("herri"), list("a proxy http://")},
		{"{httpProxy=usr7:pw1@proxy:3128 name=y}", list("usr7:", "pw1"), list("httpProxy=", "@proxy:3128", "name=y")},
		{"(usr7:pw1@proxy:3128)", list("usr7:", "pw1"), list("(***@proxy:3128)")},
		{"from postgres://usr7:pw1@db/x to y", list("usr7:", "pw1"), list("from postgres://***@db/x to y")},
		{"http://usr7:pw1@proxy:3128/a@sha256:0123456789abcdef", list("usr7:", "pw1"), list("@proxy:3128/a@sha256:0123456789abcdef")},
	} {
		m.check(t, Text(m.text))
	}
}

func TestWriterMasksLines(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(Writer(&out), nil))
	log.Info("connecting", "proxy", "http://usr7:pw1@proxy:3128", "error", fmt.Errorf("answer: %s", `{"password":"tuna fish"}`))
	log.Info("next", "name", "y")
	for line := range strings.Lines(out.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON any more: %s", line)
		}
	}
	masked{"", list("pw1", "tuna", "fish"), list("connecting", "@proxy:3128", `"name":"y"`)}.check(t, out.String())
}

func TestValueMasksObjects(t *testing.T) {
	var object any
	if err := json.Unmarshal([]byte(`{
		"metadata": {"name": "y", "annotations": {"a/token": "abc", "last": "{\"password\":\"abc\",\"name\":\"y\"}"}},
		"env": [{"name": "DB_PASSWORD", "value": "abc"}, {"name": "b", "value": "y"}],
		"password": 123, "httpProxy": "usr7:p w@proxy:3128", "secrets": ["abc", {"name": "y"}], "token": {"value": "abc", "usable": true},
		"automountServiceAccountToken": false, "clientSecret": "", "count": 3, "none": null}`), &object); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"metadata": map[string]any{"name": "y", "annotations": map[string]any{"a/token": Mask, "last": `{"password":"***","name":"y"}`}},
		"env":      []any{map[string]any{"name": "DB_PASSWORD", "value": Mask}, map[string]any{"name": "b", "value": "y"}},
		"password": Mask, "httpProxy": "***@proxy:3128", "secrets": []any{Mask, map[string]any{"name": "y"}},
		"token": map[string]any{"value": Mask, "usable": true}, "automountServiceAccountToken": false, "clientSecret": "",
		"count": 3., "none": nil,
	}
	got := Value(object)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, Value(got)); diff != "" {
		t.Errorf("masked again: %s", diff)
	}
}
