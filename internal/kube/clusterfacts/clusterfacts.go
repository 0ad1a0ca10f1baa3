// Package clusterfacts reads from the API server what the checks of prerequisites look
// at: its version and clock, the custom resource definitions, other autoscalers, nap's own
// Deployment and the size of the cluster, the
// bootstrap tokens without their secrets, the NodePools, and what the controller has noted of
// the outbound type. It writes nothing.
//
// Start with [Reader.Read].
package clusterfacts

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/crds"
	"github.com/nodeautoprovision/nap/api/v1alpha1"
	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/internal/kube/serverversion"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// Reader reads one cluster.
type Reader struct {
	// Kube reads objects, without a cache.
	Kube client.Reader
	// Server asks the API server for its version; its answer's header has the time.
	Server func(context.Context) (version string, now time.Time, err error)
	// Judge says what of a NodePool the catalogue decides: whether it can buy anything, and
	// what the quotas let it have. limits are the quotas in vCPUs, by name.
	Judge Judge
	// Rights says what the account of a Deployment of nap may do; nil where that is not asked.
	Rights Rights
	// Leave are the sources that are not asked.
	Leave []prerequisites.Source
}

// Judge says why a NodePool can buy nothing, empty while it can, and how many vCPUs the
// quotas let it have, negative where that is not known, with the names of those that decide.
type Judge func(ctx context.Context, pool *karpv1.NodePool, limits map[string]int64) (nothing string, vcpus int64, of []string)

// Rights says of a Deployment of nap's controller which permissions its account needs and
// lacks, and how many it needs; 0 for a Deployment that is not to be looked at.
type Rights func(ctx context.Context, of *appsv1.Deployment) (denied []string, asked int, err error)

// New makes a reader of the cluster that a configuration reaches.
func New(config *rest.Config, judge Judge) (*Reader, error) {
	s, err := Scheme()
	if err != nil {
		return nil, err
	}
	kube, err := client.New(config, client.Options{Scheme: s})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server %s: %w", config.Host, err)
	}
	server, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server %s: %w", config.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server %s: %w", config.Host, err)
	}
	ask := func(ctx context.Context) (string, time.Time, error) {
		return versionOf(ctx, server, base.JoinPath("version").String())
	}
	return &Reader{Kube: kube, Server: ask, Judge: judge}, nil
}

// Scheme knows the kinds that a reader reads.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme, v1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			return nil, err
		}
	}
	karpenter := schema.GroupVersion{Group: "karpenter.sh", Version: "v1"}
	s.AddKnownTypes(karpenter, &karpv1.NodePool{}, &karpv1.NodePoolList{}, &karpv1.NodeClaim{}, &karpv1.NodeClaimList{})
	metav1.AddToGroupVersion(s, karpenter) // the options of lists
	return s, nil
}

// versionOf asks the API server for its version and its time.
func versionOf(ctx context.Context, server *http.Client, address string) (string, time.Time, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", time.Time{}, err
	}
	answer, err := server.Do(request)
	if err != nil {
		return "", time.Time{}, err
	}
	defer answer.Body.Close()
	var body version.Info
	if answer.StatusCode != http.StatusOK {
		return "", time.Time{}, fmt.Errorf("the API server answers %s to GET /version", answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return "", time.Time{}, fmt.Errorf("read the version of the API server: %w", err)
	}
	now, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		now = time.Time{} // it does not tell
	}
	return serverversion.Of(&body), now, nil
}

// Read adds to facts what the API server tells, and says in Unread why the rest cannot be
// read.
func (r *Reader) Read(ctx context.Context, f *prerequisites.Facts) {
	k := &prerequisites.Kubernetes{}
	f.Kubernetes = k
	var own []appsv1.Deployment
	for _, part := range []struct {
		source prerequisites.Source
		read   func(context.Context, *prerequisites.Kubernetes) error
	}{
		{prerequisites.SourceKubernetes, r.server},
		{prerequisites.SourceDefinitions, r.definitions},
		{prerequisites.SourceDeployments, func(ctx context.Context, k *prerequisites.Kubernetes) (err error) {
			own, err = r.deployments(ctx, k)
			return err
		}},
		{prerequisites.SourceAccounts, func(ctx context.Context, k *prerequisites.Kubernetes) error { return r.accounts(ctx, k, own) }},
		{prerequisites.SourceTokens, func(ctx context.Context, k *prerequisites.Kubernetes) error { return r.tokens(ctx, k, f.Now) }},
		{prerequisites.SourceNodePools, func(ctx context.Context, k *prerequisites.Kubernetes) error { return r.nodePools(ctx, k, f.Quotas) }},
		{prerequisites.SourceNodeClasses, r.nodeClasses},
		{prerequisites.SourceMode, func(ctx context.Context, k *prerequisites.Kubernetes) error {
			return r.outbound(ctx, k, f.OutboundType())
		}},
		{prerequisites.SourceSize, r.size},
	} {
		if slices.Contains(r.Leave, part.source) {
			continue
		}
		if err := part.read(ctx, k); err != nil {
			f.Unread[part.source] = strings.ReplaceAll(err.Error(), "\n", " ")
		}
	}
}

func (r *Reader) server(ctx context.Context, k *prerequisites.Kubernetes) error {
	var err error
	k.Version, k.Clock, err = r.Server(ctx)
	return err
}

// definitions compares the custom resource definitions with this program's.
func (r *Reader) definitions(ctx context.Context, k *prerequisites.Kubernetes) error {
	wanted, err := crds.All()
	if err != nil {
		return err
	}
	for _, want := range wanted {
		has := &apiextensionsv1.CustomResourceDefinition{}
		switch err := r.Kube.Get(ctx, client.ObjectKey{Name: want.Name}, has); {
		case apierrors.IsNotFound(err):
			k.Missing = append(k.Missing, want.Name)
		case err != nil:
			return err
		case !sameSchemas(want, has):
			k.Outdated = append(k.Outdated, want.Name)
		}
		k.DefinitionsRelease = cmp.Or(k.DefinitionsRelease, releaseOf(has))
	}
	return nil
}

// releaseOf is the Helm release that has made an object, as namespace/name, empty for none.
func releaseOf(o client.Object) string {
	name := o.GetAnnotations()["meta.helm.sh/release-name"]
	if name == "" {
		return ""
	}
	return o.GetAnnotations()["meta.helm.sh/release-namespace"] + "/" + name
}

// sameSchemas compares what two definitions of a kind serve.
func sameSchemas(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	served := func(d *apiextensionsv1.CustomResourceDefinition) string {
		schemas := map[string]any{}
		for i := range d.Spec.Versions {
			if v := &d.Spec.Versions[i]; v.Served {
				schemas[v.Name] = v.Schema
			}
		}
		text, err := json.Marshal(schemas)
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	return served(a) == served(b)
}

// size counts nodes and pods, without reading them.
func (r *Reader) size(ctx context.Context, k *prerequisites.Kubernetes) (err error) {
	if k.Nodes, err = r.count(ctx, "NodeList"); err != nil {
		return err
	}
	k.Pods, err = r.count(ctx, "PodList")
	return err
}

// count asks for one object of a list and how many remain.
func (r *Reader) count(ctx context.Context, kind string) (int64, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	if err := r.Kube.List(ctx, list, client.Limit(1)); err != nil {
		return 0, err
	}
	return int64(len(list.Items)) + ptr.Deref(list.RemainingItemCount, 0), nil
}

// controllerOf is a Deployment that a release of nap's chart has made; false for others.
func controllerOf(d *appsv1.Deployment) (prerequisites.Controller, bool) {
	if !strings.HasPrefix(d.Labels["helm.sh/chart"], "nap-") || len(d.Spec.Template.Spec.Containers) == 0 {
		return prerequisites.Controller{}, false
	}
	return prerequisites.Controller{
		Deployment:  d.Namespace + "/" + d.Name,
		Release:     d.Labels["app.kubernetes.io/instance"],
		MemoryLimit: d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().Value(),
	}, true
}

// scarcer is that of two Deployments, the first of which may be none, whose container may use
// less memory: where a shadow runs beside nap, each of them takes what the cluster does.
func scarcer(a, b prerequisites.Controller) prerequisites.Controller {
	if a.Deployment == "" || b.MemoryLimit > 0 && (a.MemoryLimit == 0 || b.MemoryLimit < a.MemoryLimit) {
		return b
	}
	return a
}

// deployments finds and returns nap's own, and other autoscalers by the names that their
// charts give.
func (r *Reader) deployments(ctx context.Context, k *prerequisites.Kubernetes) (nap []appsv1.Deployment, err error) {
	for next := ""; ; {
		var list appsv1.DeploymentList
		if err := r.Kube.List(ctx, &list, client.Limit(pageOfDeployments), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			d := &list.Items[i]
			if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 {
				continue
			}
			if own, is := controllerOf(d); is {
				k.Controller = scarcer(k.Controller, own)
				nap = append(nap, *d)
			} else if otherAutoscaler(d) {
				k.Autoscalers = append(k.Autoscalers, d.Namespace+"/"+d.Name)
			}
		}
		if next = list.Continue; next == "" {
			return nap, nil
		}
	}
}

// accounts asks what the accounts of nap's own Deployments may do.
func (r *Reader) accounts(ctx context.Context, k *prerequisites.Kubernetes, own []appsv1.Deployment) error {
	if r.Rights == nil {
		return nil
	}
	for i := range own {
		denied, asked, err := r.Rights(ctx, &own[i])
		if err != nil {
			return err
		}
		if asked > 0 {
			k.Accounts = append(k.Accounts, prerequisites.Account{
				Name:    own[i].Namespace + "/" + cmp.Or(own[i].Spec.Template.Spec.ServiceAccountName, "default"),
				Release: own[i].Labels["app.kubernetes.io/instance"], Denied: denied, Asked: asked,
			})
		}
	}
	return nil
}

// pageOfDeployments is how many Deployments are read at once.
const pageOfDeployments = 500

// otherAutoscaler looks at the images: charts, names and labels are the installer's to choose,
// and nap may stand in the place of a release called karpenter.
func otherAutoscaler(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		name, _, _ := strings.Cut(c.Image[strings.LastIndexByte(c.Image, '/')+1:], "@")
		name, _, _ = strings.Cut(name, ":")
		folder := strings.Contains(c.Image, "/karpenter/") && name == "controller"
		return folder || name == "karpenter" || name == "cluster-autoscaler"
	})
}

// The keys of the Secret of a bootstrap token.
const (
	tokenEnds = "expiration"
	tokenUse  = "usage-bootstrap-authentication"
)

// tokens counts bootstrap tokens that can be used. The secret halves are not looked at.
func (r *Reader) tokens(ctx context.Context, k *prerequisites.Kubernetes, now time.Time) error {
	var list corev1.SecretList
	only := client.MatchingFields{"type": string(corev1.SecretTypeBootstrapToken)}
	if err := r.Kube.List(ctx, &list, client.InNamespace("kube-system"), only); err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Secret) int { return cmp.Compare(a.Name, b.Name) })
	for i := range list.Items {
		s := &list.Items[i]
		if s.Type != corev1.SecretTypeBootstrapToken || string(s.Data[tokenUse]) != "true" {
			continue
		}
		text := string(s.Data[tokenEnds])
		ends, err := time.Parse(time.RFC3339, text)
		switch {
		case text == "":
			k.Token.Usable++
		case err != nil || !ends.After(now):
			k.Token.Ended = fmt.Sprintf("bootstrap token kube-system/%s has ended on %s", s.Name, text)
		default:
			k.Token.Usable++
			if ends.After(k.Token.Ends) {
				k.Token.Ends = ends
			}
		}
	}
	return nil
}

func (r *Reader) nodePools(ctx context.Context, k *prerequisites.Kubernetes, quotas map[string]prerequisites.Quota) error {
	var list karpv1.NodePoolList
	if err := r.Kube.List(ctx, &list); err != nil {
		return err
	}
	limits := map[string]int64{}
	for name, q := range quotas {
		limits[name] = q.Limit
	}
	for i := range list.Items {
		p := &list.Items[i]
		out := prerequisites.NodePool{Name: p.Name, LimitCPU: -1}
		out.Nothing, out.Quota, out.QuotaOf = r.Judge(ctx, p, limits)
		if limit, has := p.Spec.Limits[corev1.ResourceCPU]; has {
			out.LimitCPU = limit.Value()
		}
		k.NodePools = append(k.NodePools, out)
	}
	slices.SortFunc(k.NodePools, func(a, b prerequisites.NodePool) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// nodeClasses finds the AKSNodeClasses whose machines bring NVIDIA's device plugin.
func (r *Reader) nodeClasses(ctx context.Context, k *prerequisites.Kubernetes) error {
	var list v1beta1.AKSNodeClassList
	if err := r.Kube.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) { // their definition is missing
			return nil
		}
		return err
	}
	for i := range list.Items {
		if list.Items[i].ManagesGPUs() {
			k.ManagedGPU = append(k.ManagedGPU, list.Items[i].Name)
		}
	}
	slices.Sort(k.ManagedGPU)
	return nil
}

// outbound counts the machines that were made with another outbound type than today's, by
// what the controller has noted. A cluster without its note has none. now is today's type,
// empty where it is not known.
func (r *Reader) outbound(ctx context.Context, k *prerequisites.Kubernetes, now string) error {
	var object v1alpha1.NodeAutoProvisioning
	err := r.Kube.Get(ctx, client.ObjectKey{Name: v1alpha1.NodeAutoProvisioningName}, &object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	noted := object.Status.Outbound
	if noted == nil {
		return nil
	}
	before, since := noted.Before, noted.Changed
	if now != "" && !strings.EqualFold(now, noted.Type) { // the controller has not seen it yet
		before, since = noted.Type, nil
	}
	if before == "" {
		return nil
	}
	var claims karpv1.NodeClaimList
	if err := r.Kube.List(ctx, &claims); err != nil {
		return err
	}
	for i := range claims.Items {
		if since == nil || claims.Items[i].CreationTimestamp.Before(since) {
			k.Outbound.Machines++
		}
	}
	k.Outbound.Before = before
	return nil
}
