package armsim

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

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

// hasImage says whether an image of AKS exists.
func (s *Server) hasImage(i image) bool {
	for _, g := range galleries() {
		if g.os != i.gallery {
			continue
		}
		known := slices.Contains(g.definitions, i.definition) || !i.community && slices.Contains(g.shared, i.definition)
		return known && (i.version == "latest" || slices.Contains(s.imageVersions, i.version))
	}
	return false
}

// checkImage refuses an image that does not exist or does not fit the size.
// Images that are not of AKS are taken as they are.
func (s *Server) checkImage(m vmSpec) error {
	if m.Image == "" {
		return errInvalidParameter("imageReference", "Required parameter 'imageReference' is missing (null).")
	}
	i := parseImage(m.Image)
	if i.gallery == "" {
		if strings.HasPrefix(strings.ToLower(m.Image), "/communitygalleries/") {
			return errImageNotFound(m.Image, s.cfg.Region)
		}
		return nil
	}
	size, _ := s.cat.Size(m.Size)
	generation, arch := 1, "x64"
	if i.gen2() {
		generation = 2
	}
	if i.arm64() {
		arch = "Arm64"
	}
	switch {
	case !s.hasImage(i):
		return errImageNotFound(m.Image, s.cfg.Region)
	case !slices.Contains(size.HyperVGenerations, generation):
		return newError(http.StatusBadRequest, "BadRequest", "The selected VM size '%s' cannot boot Hypervisor Generation '%d'. If this was a Create operation please check that the Hypervisor Generation of the Image matches the Hypervisor Generation of the selected VM Size.", m.Size, generation)
	case i.arm64() != (size.Arch == "arm64"):
		return errInvalidParameter("imageReference", "Cannot create a VM of size '%s' because this VM size only supports a CPU Architecture of '%s', but an image or disk with CPU Architecture '%s' was given.", m.Size, cpuArchitecture(size.Arch), arch)
	case m.Trusted && !i.trusted() && strings.HasPrefix(i.definition, "2"):
		return newError(http.StatusBadRequest, "BadRequest", "The provided image '%s' is not supported for 'TrustedLaunch' security type.", m.Image)
	}
	return nil
}

func errImageNotFound(ref, region string) *apiError {
	return newError(http.StatusNotFound, "GalleryImageNotFound", "The gallery image %s is not available in %s region. Please contact image owner to replicate to this region, or change your requested region.", ref, region)
}

// cpuArchitecture is Azure's word for an architecture.
func cpuArchitecture(arch string) string {
	if arch == "arm64" {
		return "Arm64"
	}
	return "x64"
}

// communityVersion is one version of an image in a community gallery.
func (s *Server) communityVersion(community, definition, version string) document {
	return document{
		"name": version, "location": s.cfg.Region, "type": "Microsoft.Compute/galleries/images/versions",
		"identifier": document{"uniqueId": "/CommunityGalleries/" + community + "/Images/" + definition + "/Versions/" + version},
		"properties": document{"publishedDate": timestamp(publishedAt(version)), "excludeFromLatest": false,
			"endOfLifeDate": timestamp(publishedAt(version).AddDate(1, 0, 0))},
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

// listCommunityVersions lists the versions of an image.
func (s *Server) listCommunityVersions(c *call) (reply, error) {
	community, definition, ok := findCommunityImage(c.path.names)
	if !ok {
		return reply{}, newError(http.StatusNotFound, "ResourceNotFound", "The resource '%s' was not found.", c.path.id())
	}
	values := []any{}
	for _, v := range s.imageVersions {
		values = append(values, s.communityVersion(community, definition, v))
	}
	return reply{status: http.StatusOK, body: document{"value": values}}, nil
}

// getCommunityVersion shows one version of an image.
func (s *Server) getCommunityVersion(c *call) (reply, error) {
	community, definition, ok := findCommunityImage(c.path.names)
	if !ok || !slices.Contains(s.imageVersions, c.path.name()) {
		return reply{}, newError(http.StatusNotFound, "ResourceNotFound", "The resource '%s' was not found.", c.path.id())
	}
	return reply{status: http.StatusOK, body: s.communityVersion(community, definition, c.path.name())}, nil
}

// listNodeImageVersions lists the node images of AKS, shared ones included.
func (s *Server) listNodeImageVersions(*call) (reply, error) {
	values := []any{}
	for _, g := range galleries() {
		for _, d := range append(slices.Clone(g.definitions), g.shared...) {
			for _, v := range s.imageVersions {
				values = append(values, document{"fullName": g.os + "-" + d + "-" + v, "os": g.os, "sku": d, "version": v})
			}
		}
	}
	return reply{status: http.StatusOK, body: document{"value": values}}, nil
}

// PublishImages adds a node image version to every image, as a release of AKS does.
func (s *Server) PublishImages(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.imageVersions, version) {
		s.imageVersions = append(s.imageVersions, version)
	}
}
