package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// ErrNotFound says that a gallery has no image that fits; the message names
// definition and version.
var ErrNotFound = errors.New("no such node image")

// ErrFIPS says that FIPS images are not in the community galleries.
var ErrFIPS = errors.New("FIPS images are only in AKS's shared image galleries; run with USE_SIG=true or remove spec.fipsMode")

// version is one release of an image definition.
type version struct {
	name string
	// published and ends are zero where Azure does not say.
	published, ends time.Time
}

type listing struct {
	versions []version
	asked    time.Time
}

// Resolver finds image versions in the community galleries of one region. It is
// safe for concurrent use.
type Resolver struct {
	client *armcompute.CommunityGalleryImageVersionsClient
	region string
	shared *Shared // nil means the community galleries
	now    func() time.Time
	keep   time.Duration          // how long the list of a definition's versions is believed
	failed *prometheus.CounterVec // nil where nothing counts

	mu       sync.Mutex
	listings map[string]listing // by gallery/definition
	// sharedAsked is when the shared galleries were last listed, all at once.
	sharedAsked time.Time
	sharing     map[string][]version
}

// UseShared makes the resolver find images in AKS's shared galleries. Call it
// before anything is resolved.
func (r *Resolver) UseShared(s *Shared) { r.shared = s }

// galleries are where the resolver's images are.
func (r *Resolver) galleries() Galleries {
	if r.shared == nil {
		return Galleries{}
	}
	return GalleriesOf(r.shared.subscription)
}

// NewResolver returns a resolver that asks the client, and believes for a while what the
// galleries list.
func NewResolver(client *armcompute.CommunityGalleryImageVersionsClient, region string, keep time.Duration,
	now func() time.Time) *Resolver {
	return &Resolver{client: client, region: region, keep: keep, now: now, listings: map[string]listing{}}
}

// Resolve finds the images of a class for a Kubernetes version, in order of
// preference. A definition without versions is left out; none at all is
// ErrNotFound.
func (r *Resolver) Resolve(ctx context.Context, class *nodeclass.NodeClass, kubernetesVersion string) ([]nodeclass.Image, error) {
	images, err := r.resolve(ctx, class, kubernetesVersion)
	if err != nil && r.failed != nil && ctx.Err() == nil {
		r.failed.WithLabelValues(class.ImageFamily).Inc()
	}
	return images, err
}

func (r *Resolver) resolve(ctx context.Context, class *nodeclass.NodeClass, kubernetesVersion string) ([]nodeclass.Image, error) {
	if class.FIPS && r.shared == nil {
		return nil, ErrFIPS
	}
	release, err := ReleaseFor(class, kubernetesVersion)
	if err != nil {
		return nil, err
	}
	var images []nodeclass.Image
	var names []string
	definitions := release.of(class)
	if len(definitions) == 0 {
		return nil, fmt.Errorf("%w: %s has no image with spec.fipsMode %s and trusted launch %v; FIPS images are of family "+
			"Ubuntu, of Ubuntu2204 with trusted launch, and of AzureLinux without",
			ErrNotFound, release.Name, onOff(class.FIPS), class.TrustedLaunch())
	}
	for _, d := range definitions {
		names = append(names, d.name)
		versions, err := r.list(ctx, release.gallery, d.name)
		if err != nil {
			return nil, err
		}
		chosen, ok := choose(versions, class.ImageVersion)
		if !ok {
			continue
		}
		images = append(images, nodeclass.Image{
			ID:         r.galleries().id(galleryOf(release.gallery), d.name, chosen),
			Definition: d.name, Arch: d.arch, Generation: d.generation,
		})
	}
	if len(images) == 0 {
		what := "any version"
		if class.ImageVersion != "" {
			what = fmt.Sprintf("version %s (spec.imageVersion)", class.ImageVersion)
		}
		return nil, fmt.Errorf("%w: gallery %s in region %s has no %s of %s",
			ErrNotFound, release.gallery, r.region, what, strings.Join(names, ", "))
	}
	return images, nil
}

// Withdrawn reports whether the gallery lists versions of an image's definition, and not the
// image's own: no machine can be made of it. The image is one that the class may use with the
// Kubernetes version, and has the resource id; of all others nothing is known, and false is the
// answer. Errors are those of Resolve.
func (r *Resolver) Withdrawn(ctx context.Context, class *nodeclass.NodeClass, kubernetesVersion, id string) (bool, error) {
	release, err := ReleaseFor(class, kubernetesVersion)
	if err != nil {
		return false, err
	}
	for _, d := range release.of(class) {
		before := r.galleries().id(galleryOf(release.gallery), d.name, "") // ends where the version begins
		if len(id) <= len(before) || !strings.EqualFold(id[:len(before)], before) {
			continue
		}
		versions, err := r.list(ctx, release.gallery, d.name)
		if err != nil {
			return false, err
		}
		return len(versions) > 0 && !slices.ContainsFunc(versions, func(v version) bool { return v.name == id[len(before):] }), nil
	}
	return false, nil
}

// choose picks the pinned version, or the one published last.
func choose(versions []version, pinned string) (string, bool) {
	if pinned != "" {
		ok := slices.ContainsFunc(versions, func(v version) bool { return v.name == pinned })
		return pinned, ok
	}
	if len(versions) == 0 {
		return "", false
	}
	newest := slices.MaxFunc(versions, func(a, b version) int {
		if c := a.published.Compare(b.published); c != 0 {
			return c
		}
		return slices.Compare(numbers(a.name), numbers(b.name))
	})
	return newest.name, true
}

// numbers are the parts of a version such as 202606.09.0, so that 10 comes after 9.
func numbers(name string) []int {
	var out []int
	for part := range strings.SplitSeq(name, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		out = append(out, n)
	}
	return out
}

func onOff(fips bool) string {
	if fips {
		return "FIPS"
	}
	return "Disabled"
}

// listShared reads the versions in the shared galleries, from memory while they
// are fresh.
func (r *Resolver) listShared(ctx context.Context, key string) ([]version, error) {
	r.mu.Lock()
	defer r.mu.Unlock() // one asks, the others wait for its answer
	if r.sharing == nil || r.now().Sub(r.sharedAsked) >= r.keep {
		asked := r.now()
		found, err := r.shared.list(ctx)
		if err != nil {
			return nil, err
		}
		r.sharing, r.sharedAsked = found, asked
	}
	return r.sharing[key], nil
}

// list reads the versions of a definition, from memory while they are fresh.
func (r *Resolver) list(ctx context.Context, gallery, name string) ([]version, error) {
	if r.shared != nil {
		return r.listShared(ctx, galleryOf(gallery).shared+"/"+name)
	}
	key := gallery + "/" + name
	r.mu.Lock()
	known, ok := r.listings[key]
	r.mu.Unlock()
	if ok && r.now().Sub(known.asked) < r.keep {
		return known.versions, nil
	}
	asked := r.now()
	var versions []version
	for pager := r.client.NewListPager(r.region, gallery, name, nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if isNotFound(err) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list the versions of node image %s in gallery %s: %w", name, gallery, err)
		}
		for _, v := range page.Value {
			if v == nil || v.Name == nil {
				continue
			}
			found := version{name: *v.Name}
			if p := v.Properties; p != nil {
				found.published, found.ends = dateOf(p.PublishedDate), dateOf(p.EndOfLifeDate)
			}
			versions = append(versions, found)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listings[key] = listing{versions, asked}
	return versions, nil
}

func dateOf(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func isNotFound(err error) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
