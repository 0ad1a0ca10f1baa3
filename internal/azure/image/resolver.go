package image

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// keepFor is how long the list of a definition's versions is believed. AKS
// releases node images about once a week.
const keepFor = time.Hour

// ErrNotFound says that a gallery has no image that fits; the message names
// definition and version.
var ErrNotFound = errors.New("no such node image")

// ErrFIPS says that FIPS images are not in the community galleries.
var ErrFIPS = errors.New("FIPS images are only in AKS's shared image galleries; run with USE_SIG=true or remove spec.fipsMode")

// version is one release of an image definition.
type version struct {
	name      string
	published time.Time
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
	now    func() time.Time

	mu       sync.Mutex
	listings map[string]listing // by gallery/definition
}

// NewResolver returns a resolver that asks the client.
func NewResolver(client *armcompute.CommunityGalleryImageVersionsClient, region string, now func() time.Time) *Resolver {
	return &Resolver{client: client, region: region, now: now, listings: map[string]listing{}}
}

// Resolve finds the images of a class for a Kubernetes version, in order of
// preference. A definition without versions is left out; none at all is
// ErrNotFound.
func (r *Resolver) Resolve(ctx context.Context, class *nodeclass.NodeClass, kubernetesVersion string) ([]nodeclass.Image, error) {
	if class.FIPS {
		return nil, ErrFIPS
	}
	release, err := ReleaseOf(class.ImageFamily, kubernetesVersion)
	if err != nil {
		return nil, err
	}
	var images []nodeclass.Image
	var names []string
	for _, d := range release.of(class) {
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
			ID:         fmt.Sprintf("/CommunityGalleries/%s/images/%s/versions/%s", release.gallery, d.name, chosen),
			Definition: d.name, Arch: d.arch, Generation: d.generation,
		})
	}
	if len(images) == 0 {
		what := "any version"
		if class.ImageVersion != "" {
			what = fmt.Sprintf("version %s (spec.imageVersion)", class.ImageVersion)
		}
		return nil, fmt.Errorf("%w: gallery %s in region %s has no %s of %s", ErrNotFound, release.gallery, r.region, what, strings.Join(names, ", "))
	}
	return images, nil
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
		return strings.Compare(a.name, b.name)
	})
	return newest.name, true
}

// list reads the versions of a definition, from memory while they are fresh.
func (r *Resolver) list(ctx context.Context, gallery, name string) ([]version, error) {
	key := gallery + "/" + name
	r.mu.Lock()
	known, ok := r.listings[key]
	r.mu.Unlock()
	if ok && r.now().Sub(known.asked) < keepFor {
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
			if v.Properties != nil && v.Properties.PublishedDate != nil {
				found.published = *v.Properties.PublishedDate
			}
			versions = append(versions, found)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listings[key] = listing{versions, asked}
	return versions, nil
}

func isNotFound(err error) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
