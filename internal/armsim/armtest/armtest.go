// Package armtest puts a simulated Azure beside a test: a server, a transport
// that reaches it without sockets, and what SDK clients need to talk to it.
//
//	func TestLaunch(t *testing.T) {
//		env := armtest.New(t, func(c *armsim.Config) {
//			c.Quota = map[string]int64{"cores": 10}
//		})
//		vms, err := armcompute.NewVirtualMachinesClient(env.SubscriptionID, env.Credential, env.ClientOptions())
//		...
//		env.Server.AddFault(armsim.Fault{Kind: armsim.FaultCapacity, Size: "Standard_D*"})
//	}
//
// The bodies of requests and answers are judged on their way: a field that Azure does
// not publish fails the test.
//
// Nothing takes time unless the test asks for it: all latencies and lags are
// zero and there are no rate limits. [Realistic] turns the real ones on; use it
// inside testing/synctest, where they pass at once. New may be called inside a
// synctest bubble: it opens no sockets and starts no goroutines, only timers,
// which the test's cleanup stops.
package armtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/nodeautoprovision/nap/internal/armsim"
)

// Endpoint is the address under which SDK clients know the server. No name
// service knows it: only Env's transport leads there.
const Endpoint = "https://armsim.test"

// AdminToken opens /admin/ of every server made by New.
const AdminToken = "armtest"

// Env is a simulated Azure and the way to it.
type Env struct {
	Server *armsim.Server

	SubscriptionID    string
	TenantID          string
	Region            string
	ResourceGroup     string // of the cluster
	NodeResourceGroup string
	ClusterName       string
	SubnetID          string

	// Cloud is the SDK's description of the simulated cloud.
	Cloud cloud.Configuration
	// Credential is good for everything, unless Config.Principals says otherwise:
	// it then acts as the first of them.
	Credential azcore.TokenCredential
	// HTTP reaches the server, also for the APIs without an SDK client:
	// Endpoint + "/api/retail/prices", the AKS machine API, /admin/.
	HTTP *http.Client
}

// New starts a simulated Azure that lives as long as the test. Options change
// its configuration before it starts.
func New(t testing.TB, options ...func(*armsim.Config)) *Env {
	t.Helper()
	cfg := armsim.Config{UsageLag: -1, GraphLag: -1, PollEvery: time.Millisecond, Limits: []armsim.Limit{}, AdminToken: AdminToken}
	// The zero Latencies would mean the real ones; the shortest there is means none.
	cfg.Latency.Boot.Max = 1
	for _, o := range options {
		o(&cfg)
	}
	server, err := armsim.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	env := Around(server)
	judge := newBodyJudge(server)
	env.HTTP = &http.Client{Transport: transport{server.Handler(), judge}}
	t.Cleanup(func() {
		for _, verdict := range judge.found() {
			t.Errorf("not as Azure publishes it: %s", verdict)
		}
	})
	return env
}

// Realistic gives the server the delays, lags and rate limits of the real Azure.
func Realistic(c *armsim.Config) {
	c.Latency = armsim.RealLatencies()
	c.UsageLag, c.GraphLag, c.PollEvery = 0, 0, 0
	c.Limits = nil
}

// Around makes an Env for a server that the caller owns.
func Around(server *armsim.Server) *Env {
	cfg := server.Config()
	client := ""
	if len(cfg.Principals) > 0 {
		client = cfg.Principals[0].ClientID
	}
	return &Env{
		Server:         server,
		SubscriptionID: cfg.SubscriptionID, TenantID: cfg.TenantID, Region: cfg.Region,
		ResourceGroup: cfg.Cluster.ResourceGroup, NodeResourceGroup: cfg.Cluster.NodeResourceGroup, ClusterName: cfg.Cluster.Name,
		SubnetID:   server.SubnetID(),
		Cloud:      Cloud(Endpoint),
		Credential: Credential{Server: server, ClientID: client},
		HTTP:       &http.Client{Transport: transport{server.Handler(), nil}},
	}
}

// Cloud describes a simulated cloud behind an endpoint to the SDK.
func Cloud(endpoint string) cloud.Configuration {
	return cloud.Configuration{
		ActiveDirectoryAuthorityHost: endpoint,
		Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
			cloud.ResourceManager: {Endpoint: endpoint, Audience: "https://management.azure.com"},
		},
	}
}

// ClientOptions are new options for ARM clients. The SDK's retries are off, so
// that a test sees every answer; set Retry to have them.
func (e *Env) ClientOptions() *arm.ClientOptions {
	return &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{
			Cloud:     e.Cloud,
			Transport: e.HTTP,
			Retry:     policy.RetryOptions{MaxRetries: -1},
		},
		DisableRPRegistration: true,
	}
}

// As is a credential for one of the configured principals.
func (e *Env) As(clientID string) azcore.TokenCredential {
	return Credential{Server: e.Server, ClientID: clientID}
}

// Credential signs in without asking the token endpoint.
type Credential struct {
	Server   *armsim.Server
	ClientID string
}

// GetToken implements azcore.TokenCredential.
func (c Credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, expires := c.Server.Token(c.ClientID)
	return azcore.AccessToken{Token: token, ExpiresOn: expires}, nil
}

// transport calls a handler as if it were a network.
type transport struct {
	handler http.Handler
	judge   *bodyJudge // nil: the bodies are not looked at
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	in := r.Clone(r.Context())
	in.Host = r.URL.Host
	in.RequestURI = r.URL.RequestURI()
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer in.Body.Close()
	defer func() {
		// A handler that aborts closes the connection.
		p := recover()
		if cause, ok := p.(error); ok && errors.Is(cause, http.ErrAbortHandler) {
			resp, err = nil, fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, io.ErrUnexpectedEOF)
		} else if p != nil {
			panic(p)
		}
	}()
	serve := func(r *http.Request) *http.Response {
		w := httptest.NewRecorder()
		t.handler.ServeHTTP(w, r)
		return w.Result()
	}
	if t.judge == nil {
		resp = serve(in)
	} else if resp, err = t.judge.exchange(in, serve); err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp.Request = r
	return resp, nil
}
