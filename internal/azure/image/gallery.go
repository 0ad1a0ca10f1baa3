package image

import (
	"fmt"
	"strings"
)

// gallery is one of AKS's two galleries: its name in the community, and as shared
// gallery, which is also how node image versions begin.
type gallery struct{ community, shared, group string }

// galleryPair are AKS's galleries.
func galleryPair() []gallery {
	return []gallery{
		{GalleryUbuntu, "AKSUbuntu", "AKS-Ubuntu"},
		{galleryAzureLinux, "AKSAzureLinux", "AKS-AzureLinux"},
	}
}

// galleryOf is the gallery with this name in the community.
func galleryOf(community string) gallery {
	for _, known := range galleryPair() {
		if known.community == community {
			return known
		}
	}
	return gallery{community: community}
}

// Galleries names images: in the community galleries, or in the shared ones of a
// subscription.
type Galleries struct{ subscription string }

// GalleriesOf are the shared galleries in a subscription, or with an empty one
// the community galleries.
func GalleriesOf(subscription string) Galleries { return Galleries{subscription} }

// ID is the resource id of a node image version, such as
// AKSUbuntu-2204gen2containerd-202606.09.0. What is none stays as it is.
func (g Galleries) ID(nodeImageVersion string) string {
	parts := strings.SplitN(nodeImageVersion, "-", 3)
	for _, known := range galleryPair() {
		if len(parts) == 3 && strings.EqualFold(parts[0], known.shared) {
			return g.id(known, parts[1], parts[2])
		}
	}
	return nodeImageVersion
}

func (g Galleries) id(known gallery, definition, version string) string {
	if g.subscription == "" {
		return fmt.Sprintf("/CommunityGalleries/%s/images/%s/versions/%s", known.community, definition, version)
	}
	return fmt.Sprintf("/subscriptions/%s/resourceGroups/%s/providers/Microsoft.Compute/galleries/%s/images/%s/versions/%s",
		g.subscription, known.group, known.shared, definition, version)
}

// NodeImageVersion is AKS's name of an image, given its resource id in either
// kind of gallery; empty for other images.
func NodeImageVersion(id string) string {
	parts := strings.Split(strings.Trim(id, "/"), "/")
	if len(parts) < 6 {
		return ""
	}
	tail := parts[len(parts)-5:] // gallery, images, definition, versions, version
	for _, known := range galleryPair() {
		if strings.EqualFold(tail[0], known.community) || strings.EqualFold(tail[0], known.shared) {
			return known.shared + "-" + tail[2] + "-" + tail[4]
		}
	}
	return ""
}
