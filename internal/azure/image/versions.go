package image

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// SupportedFor is how old a node image may get before AKS replaces it whatever a
// maintenance window says (learn.microsoft.com/azure/aks/node-auto-provisioning-upgrade-image).
const SupportedFor = 90 * 24 * time.Hour

// Published is a version of a release's images, which spec.imageVersion can name.
type Published struct {
	// Version is its name, such as 202606.09.0.
	Version string
	// At is when it was published, by its name where Azure does not say; zero where neither does.
	At time.Time
	// Ends is when the gallery ends its life, zero where Azure does not say.
	Ends time.Time
	// Definitions are the images that there are of it, in the order of preference. One that
	// is missing has not been published for its architecture or generation.
	Definitions []string
	// Newest says that a class that names no version gets this one for some of its images.
	Newest bool
}

// Versions lists what a class could be pinned to, the newest first, and the release that
// the class means. Nothing at all is [ErrNotFound].
func (r *Resolver) Versions(ctx context.Context, class *nodeclass.NodeClass, kubernetesVersion string) (Release, []Published, error) {
	release, err := ReleaseFor(class, kubernetesVersion)
	if err != nil {
		return Release{}, nil, err
	}
	if class.FIPS && r.shared == nil {
		return release, nil, ErrFIPS
	}
	found := map[string]*Published{}
	for _, d := range release.of(class) {
		versions, err := r.list(ctx, release.gallery, d.name)
		if err != nil {
			return release, nil, err
		}
		newest, _ := choose(versions, "")
		for _, v := range versions {
			p := found[v.name]
			if p == nil {
				p = &Published{Version: v.name, At: v.published, Ends: v.ends}
				if p.At.IsZero() {
					p.At = day(v.name)
				}
				found[v.name] = p
			}
			p.Definitions = append(p.Definitions, d.name)
			p.Newest = p.Newest || v.name == newest
		}
	}
	if len(found) == 0 {
		return release, nil, fmt.Errorf("%w: gallery %s in region %s has no version of %s", ErrNotFound, release.gallery, r.region, release.Name)
	}
	out := make([]Published, 0, len(found))
	for _, p := range found {
		out = append(out, *p)
	}
	slices.SortFunc(out, func(a, b Published) int {
		if c := b.At.Compare(a.At); c != 0 {
			return c
		}
		return slices.Compare(numbers(b.Version), numbers(a.Version))
	})
	return release, out, nil
}

// day is the date that the name of a version begins with (202606.09.0, formerly
// 2022.10.03), zero where it has none.
func day(name string) time.Time {
	parts := strings.Split(name, ".")
	for _, form := range []string{"200601.02", "2006.01.02"} {
		n := strings.Count(form, ".") + 1
		if len(parts) < n {
			continue
		}
		if at, err := time.Parse(form, strings.Join(parts[:n], ".")); err == nil {
			return at
		}
	}
	return time.Time{}
}
