package compute

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// images are the node images that exist.
type images struct {
	sub      *arm.Subscription
	versions []string // of every image, oldest first
}

// gallery is one of the two that AKS publishes node images in.
type gallery struct {
	community   string // public name of the community gallery
	os          string // name of the shared gallery, and prefix of node image versions
	definitions []string
	shared      []string // definitions that only the shared gallery has
}

// galleries are those of AKS with the definitions that node provisioning uses.
func galleries() []gallery {
	return []gallery{
		{
			community: "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2", os: "AKSUbuntu",
			definitions: []string{
				"2204containerd", "2204gen2containerd", "2204gen2arm64containerd", "2204gen2TLcontainerd",
				"2404containerd", "2404gen2containerd", "2404gen2arm64containerd", "2404gen2TLcontainerd",
			},
			shared: []string{"2004fipscontainerd", "2004gen2fipscontainerd", "2204gen2fipsTLcontainerd"},
		},
		{
			community: "AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b", os: "AKSAzureLinux",
			definitions: []string{"V2", "V2gen2", "V2gen2arm64", "V2gen2TL", "V3", "V3gen2", "V3gen2arm64", "V3gen2TL"},
			shared:      []string{"V2fips", "V2gen2fips", "V3fips", "V3gen2fips", "V3gen2arm64fips"},
		},
	}
}

// DefaultImageVersions are the node image versions of a server whose Config
// names none, oldest first.
func DefaultImageVersions() []string { return []string{"202605.12.0", "202606.02.0", "202606.09.0"} }

// publishedAt is the day in a version, which starts with year and month, then day.
func publishedAt(version string) time.Time {
	t, err := time.Parse("200601.02", version[:min(len(version), 9)])
	if err != nil {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return t
}

// image is a parsed reference to a node image.
type image struct {
	gallery    string // AKSUbuntu or AKSAzureLinux; empty for an image that is not of AKS
	definition string
	version    string
	community  bool
}

func (i image) arm64() bool { return strings.Contains(i.definition, "arm64") }
func (i image) gen2() bool  { return strings.Contains(i.definition, "gen2") }
func (i image) trusted() bool {
	return strings.Contains(i.definition, "TL")
}

// parseImage reads an image reference; the gallery is empty when it is none of AKS's.
func parseImage(ref string) image {
	seg := strings.Split(strings.Trim(ref, "/"), "/")
	if len(seg) == 6 && strings.EqualFold(seg[0], "CommunityGalleries") {
		i := image{definition: seg[3], version: seg[5], community: true}
		for _, g := range galleries() {
			if strings.EqualFold(g.community, seg[1]) {
				i.gallery = g.os
			}
		}
		return i
	}
	if len(seg) == 12 && strings.EqualFold(seg[6], "galleries") {
		i := image{definition: seg[9], version: seg[11]}
		for _, g := range galleries() {
			if strings.EqualFold(g.os, seg[7]) {
				i.gallery = g.os
			}
		}
		return i
	}
	return image{}
}

// has says whether an image of AKS exists.
func (s *images) has(i image) bool {
	for _, g := range galleries() {
		if g.os != i.gallery {
			continue
		}
		known := slices.Contains(g.definitions, i.definition) || !i.community && slices.Contains(g.shared, i.definition)
		return known && (i.version == "latest" || slices.Contains(s.versions, i.version))
	}
	return false
}

// check refuses an image that does not exist or does not fit the size.
// Images that are not of AKS are taken as they are.
func (s *images) check(m Spec) error {
	if m.Image == "" {
		return arm.ErrInvalidParameter("imageReference", "Required parameter 'imageReference' is missing (null).")
	}
	i := parseImage(m.Image)
	if i.gallery == "" {
		if strings.HasPrefix(strings.ToLower(m.Image), "/communitygalleries/") {
			return errImageNotFound(m.Image, s.sub.Region)
		}
		return nil
	}
	size, _ := s.sub.SKUTable.Size(m.Size)
	generation, arch := 1, "x64"
	if i.gen2() {
		generation = 2
	}
	if i.arm64() {
		arch = "Arm64"
	}
	switch {
	case !s.has(i):
		return errImageNotFound(m.Image, s.sub.Region)
	case !slices.Contains(size.HyperVGenerations, generation):
		return arm.NewError(http.StatusBadRequest, "BadRequest",
			"The selected VM size '%s' cannot boot Hypervisor Generation '%d'. If this was a Create operation please check "+
				"that the Hypervisor Generation of the Image matches the Hypervisor Generation of the selected VM Size.", m.Size, generation)
	case i.arm64() != (size.Arch == "arm64"):
		return arm.ErrInvalidParameter("imageReference",
			"Cannot create a VM of size '%s' because this VM size only supports a CPU Architecture of '%s', but an image or "+
				"disk with CPU Architecture '%s' was given.", m.Size, cpuArchitecture(size.Arch), arch)
	case m.Trusted && !i.trusted() && strings.HasPrefix(i.definition, "2"):
		return arm.NewError(http.StatusBadRequest, "BadRequest",
			"The provided image '%s' is not supported for 'TrustedLaunch' security type.", m.Image)
	}
	return nil
}

func errImageNotFound(ref, region string) *arm.Error {
	return arm.NewError(http.StatusNotFound, "GalleryImageNotFound", "The gallery image %s is not available in %s "+
		"region. Please contact image owner to replicate to this region, or change your requested region.", ref, region)
}

// cpuArchitecture is Azure's word for an architecture.
func cpuArchitecture(arch string) string {
	if arch == "arm64" {
		return "Arm64"
	}
	return "x64"
}

// communityVersion is one version of an image in a community gallery.
func (s *images) communityVersion(community, definition, version string) arm.Document {
	return arm.Document{
		"name": version, "location": s.sub.Region, "type": "Microsoft.Compute/galleries/images/versions",
		"identifier": arm.Document{"uniqueId": "/CommunityGalleries/" + community + "/Images/" + definition + "/Versions/" + version},
		"properties": arm.Document{"publishedDate": arm.Timestamp(publishedAt(version)), "excludeFromLatest": false,
			"endOfLifeDate": arm.Timestamp(publishedAt(version).AddDate(1, 0, 0))},
	}
}

// findCommunityImage looks an image definition up by the names of a path.
func findCommunityImage(names []string) (community, definition string, ok bool) {
	for _, g := range galleries() {
		if strings.EqualFold(g.community, names[1]) {
			for _, d := range g.definitions {
				if strings.EqualFold(d, names[2]) {
					return g.community, d, true
				}
			}
		}
	}
	return "", "", false
}

// list lists the versions of an image.
func (s *images) list(c *arm.Call) (arm.Reply, error) {
	community, definition, ok := findCommunityImage(c.Path.Names)
	if !ok {
		return arm.Reply{}, arm.NewError(http.StatusNotFound, "ResourceNotFound", "The resource '%s' was not found.", c.Path.ID())
	}
	values := []any{}
	for _, v := range s.versions {
		values = append(values, s.communityVersion(community, definition, v))
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{"value": values}}, nil
}

// get shows one version of an image.
func (s *images) get(c *arm.Call) (arm.Reply, error) {
	community, definition, ok := findCommunityImage(c.Path.Names)
	if !ok || !slices.Contains(s.versions, c.Path.Name()) {
		return arm.Reply{}, arm.NewError(http.StatusNotFound, "ResourceNotFound", "The resource '%s' was not found.", c.Path.ID())
	}
	return arm.Reply{Status: http.StatusOK, Body: s.communityVersion(community, definition, c.Path.Name())}, nil
}

// listNodeImages lists the node images of AKS, shared ones included.
func (s *images) listNodeImages(*arm.Call) (arm.Reply, error) {
	values := []any{}
	for _, g := range galleries() {
		for _, d := range append(slices.Clone(g.definitions), g.shared...) {
			for _, v := range s.versions {
				values = append(values, arm.Document{"fullName": g.os + "-" + d + "-" + v, "os": g.os, "sku": d, "version": v})
			}
		}
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{"value": values}}, nil
}

// publish adds a node image version to every image, as a release of AKS does.
func (s *images) publish(version string) {
	if !slices.Contains(s.versions, version) {
		s.versions = append(s.versions, version)
	}
}

// parseNodeImage reads AKSUbuntu-2204gen2containerd-202606.09.0.
func parseNodeImage(v string) image {
	part := strings.SplitN(v, "-", 3)
	if len(part) != 3 {
		return image{}
	}
	return image{gallery: part[0], definition: part[1], version: part[2]}
}
