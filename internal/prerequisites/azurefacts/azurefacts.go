// Package azurefacts reads from Azure what the checks of prerequisites look at: the
// managed cluster, its network with security groups and routes, the subscription with
// its resource providers and quota, role assignments, images and prices. It writes
// nothing.
//
// Start with [New] and [Reader.Read].
package azurefacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/authorization/armauthorization/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armresources"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resources/armsubscriptions"

	"github.com/nodeautoprovision/nap/internal/azure"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/managedcluster"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/azure/quota"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// Target is the cluster whose facts are read, and the identity whose rights are.
type Target struct {
	Subscription, ResourceGroup, Name string
	// Principal is the object id of nap's identity; empty means that of the
	// credential.
	Principal string
	// Class is a plain node class: what images are looked for.
	Class *nodeclass.NodeClass
	// RetailPrices is the URL of the retail price API; empty means Azure's own.
	RetailPrices string
	// NoRetailPrices says that the cloud has no such API.
	NoRetailPrices bool
	// Leave are the sources that are not asked.
	Leave []prerequisites.Source
}

// Reader reads the facts of one cluster.
type Reader struct {
	target     Target
	credential azcore.TokenCredential
	options    *arm.ClientOptions
	http       price.Doer
	now        func() time.Time

	clusters      *armcontainerservice.ManagedClustersClient
	maintenance   *armcontainerservice.MaintenanceConfigurationsClient
	usages        *armcompute.UsageClient
	images        *armcompute.CommunityGalleryImageVersionsClient
	subscriptions *armsubscriptions.Client
	providers     *armresources.ProvidersClient
	assignments   *armauthorization.RoleAssignmentsClient
	definitions   *armauthorization.RoleDefinitionsClient
}

// New makes a reader that signs in with a credential. doer reaches the retail price
// API, which takes no credential; now reads the clock.
func New(target Target, credential azcore.TokenCredential, options *arm.ClientOptions,
	doer price.Doer, now func() time.Time) (*Reader, error) {
	r := &Reader{target: target, credential: credential, options: options, http: doer, now: now}
	var errs [8]error
	r.clusters, errs[0] = armcontainerservice.NewManagedClustersClient(target.Subscription, credential, options)
	r.maintenance, errs[1] = armcontainerservice.NewMaintenanceConfigurationsClient(target.Subscription, credential, options)
	r.usages, errs[2] = armcompute.NewUsageClient(target.Subscription, credential, options)
	r.images, errs[3] = armcompute.NewCommunityGalleryImageVersionsClient(target.Subscription, credential, options)
	r.subscriptions, errs[4] = armsubscriptions.NewClient(credential, options)
	r.providers, errs[5] = armresources.NewProvidersClient(target.Subscription, credential, options)
	r.assignments, errs[6] = armauthorization.NewRoleAssignmentsClient(target.Subscription, credential, options)
	r.definitions, errs[7] = armauthorization.NewRoleDefinitionsClient(credential, options)
	return r, errors.Join(errs[:]...)
}

// Read reads all that can be read, and says in Unread why the rest cannot. The error is
// that of the managed cluster, without which nothing else means anything.
func (r *Reader) Read(ctx context.Context) (*prerequisites.Facts, error) {
	f := &prerequisites.Facts{Now: r.now(), Unread: map[prerequisites.Source]string{}}
	cluster, err := managedcluster.Read(ctx, r.clusters, r.target.ResourceGroup, r.target.Name)
	if err != nil {
		return nil, err
	}
	f.Cluster = &cluster
	for _, part := range []struct {
		source prerequisites.Source
		read   func(context.Context, *prerequisites.Facts) error
	}{
		{prerequisites.SourceNetwork, r.network},
		{prerequisites.SourceSubscription, r.subscription},
		{prerequisites.SourceProviders, r.registrations},
		{prerequisites.SourceFeatures, r.features},
		{prerequisites.SourceRoles, r.roles},
		{prerequisites.SourceQuota, r.quotas},
		{prerequisites.SourceMaintenance, r.windows},
	} {
		if slices.Contains(r.target.Leave, part.source) {
			continue
		}
		if err := part.read(ctx, f); err != nil {
			f.Unread[part.source] = Short(err)
		}
	}
	r.image(ctx, f)
	r.price(ctx, f)
	return f, nil
}

// Short is an error in one line: of an answer of Azure, its code and the action that the
// caller lacks.
func Short(err error) string {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return fmt.Sprintf("Azure answers %d %s to %s", answer.StatusCode, answer.ErrorCode, answer.RawResponse.Request.URL.Path)
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

func (r *Reader) subscription(ctx context.Context, f *prerequisites.Facts) error {
	answer, err := r.subscriptions.Get(ctx, r.target.Subscription, nil)
	if err == nil && answer.State != nil {
		f.Subscription.State = string(*answer.State)
	}
	return err
}

// namespaces are the resource providers that nap calls.
func namespaces() []string {
	return []string{"Microsoft.Compute", "Microsoft.ContainerService", "Microsoft.Network"}
}

func (r *Reader) registrations(ctx context.Context, f *prerequisites.Facts) error {
	states := map[string]string{}
	for _, name := range namespaces() {
		answer, err := r.providers.Get(ctx, name, nil)
		if err != nil {
			return err
		}
		states[name] = value(answer.RegistrationState)
	}
	f.Subscription.Providers = states
	return nil
}

// features reads the preview features that nap's machines may need. The SDK has no client
// for them in the modules that nap has.
func (r *Reader) features(ctx context.Context, f *prerequisites.Facts) error {
	client, err := arm.NewClient("nap", "v1.0.0", r.credential, r.options)
	if err != nil {
		return err
	}
	path := "/subscriptions/" + r.target.Subscription + "/providers/Microsoft.Features/providers/Microsoft.ContainerService/features/" +
		prerequisites.FeatureManagedGPU
	request, err := runtime.NewRequest(ctx, http.MethodGet, runtime.JoinPaths(client.Endpoint(), path))
	if err != nil {
		return err
	}
	request.Raw().URL.RawQuery = "api-version=2021-07-01"
	answer, err := client.Pipeline().Do(request)
	if err != nil {
		return err
	}
	if !runtime.HasStatusCode(answer, http.StatusOK) {
		return runtime.NewResponseError(answer)
	}
	var body struct {
		Properties struct {
			State string `json:"state"`
		} `json:"properties"`
	}
	if err := runtime.UnmarshalAsJSON(answer, &body); err != nil {
		return err
	}
	f.Subscription.ManagedGPU = body.Properties.State
	return nil
}

func (r *Reader) quotas(ctx context.Context, f *prerequisites.Facts) error {
	tracker := quota.NewTracker(r.now)
	if err := tracker.Refresh(ctx, r.usages, f.Cluster.Location); err != nil {
		return err
	}
	f.Quotas = map[string]prerequisites.Quota{}
	for _, l := range tracker.Lines() {
		f.Quotas[l.Name] = prerequisites.Quota{Limit: l.Limit, Used: l.Used}
	}
	return nil
}

func (r *Reader) windows(ctx context.Context, f *prerequisites.Facts) error {
	for pager := r.maintenance.NewListByManagedClusterPager(r.target.ResourceGroup, r.target.Name, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, m := range page.Value {
			w := prerequisites.Window{Name: value(m.Name)}
			if window, err := azure.WindowOf(m.Properties); err != nil {
				w.Wrong = err.Error()
			} else if window.Set() {
				w.Open, w.Next = window.Open(f.Now)
			} else {
				w.Open = true
			}
			f.Windows = append(f.Windows, w)
		}
	}
	slices.SortFunc(f.Windows, func(a, b prerequisites.Window) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

func (r *Reader) image(ctx context.Context, f *prerequisites.Facts) {
	images, err := image.NewResolver(r.images, f.Cluster.Location, 0, r.now).Resolve(ctx, r.target.Class, f.Cluster.State.KubernetesVersion)
	if err != nil {
		f.NoImages = Short(err)
		return
	}
	for _, one := range images {
		f.Images = append(f.Images, image.NodeImageVersion(one.ID))
	}
}

func (r *Reader) price(ctx context.Context, f *prerequisites.Facts) {
	if f.NoPriceAPI = r.target.NoRetailPrices; f.NoPriceAPI {
		return
	}
	n, err := price.NewClient(r.target.RetailPrices, r.http, r.now).FirstPage(ctx, f.Cluster.Location)
	if f.Prices = n; err != nil {
		f.NoPrices = Short(err)
	}
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

func answered(err error, status int) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == status
}

// unique are the texts without repetitions and empty ones, in order.
func unique(texts ...string) []string {
	set := map[string]string{}
	for _, t := range texts {
		if t != "" {
			set[strings.ToLower(t)] = t
		}
	}
	return slices.Sorted(maps.Values(set))
}

// notFound reports that Azure does not know a resource.
func notFound(err error) bool { return answered(err, http.StatusNotFound) }
