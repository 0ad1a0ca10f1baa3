// Package image finds the node images that machines run.
//
// An image family and a Kubernetes version decide on a release (Ubuntu 24.04,
// Azure Linux 3), a release has a definition per architecture and hypervisor
// generation, and every definition has versions in Azure's community galleries.
// [Resolver.Resolve] gives the newest version of each, or the pinned one, in
// order of preference.
package image

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

// The community galleries in which AKS publishes node images.
const (
	GalleryUbuntu     = "AKSUbuntu-38d80f77-467a-481f-a8d4-09b6d4220bd2"
	galleryAzureLinux = "AKSAzureLinux-f7c7cda5-1c9a-4bdc-a222-9614c968580b"
)

// Release is an operating system release that AKS builds images of.
type Release struct {
	// Name is what the label os-sku-effective says: Ubuntu2404, AzureLinux3.
	Name        string
	gallery     string
	definitions []definition
	trusted     []definition
	// fips and fipsTrusted are in the shared galleries alone.
	fips        []definition
	fipsTrusted []definition
}

type definition struct {
	name       string
	arch       string
	generation int
}

func ubuntu(name, number string) Release {
	r := Release{Name: name, gallery: GalleryUbuntu, definitions: []definition{
		{number + "gen2containerd", "amd64", 2},
		{number + "containerd", "amd64", 1},
		{number + "gen2arm64containerd", "arm64", 2},
	}, trusted: []definition{{number + "gen2TLcontainerd", "amd64", 2}}}
	if number == "2204" {
		r.fipsTrusted = []definition{{"2204gen2fipsTLcontainerd", "amd64", 2}}
	}
	return r
}

func azureLinux(name, version string) Release {
	r := Release{Name: name, gallery: galleryAzureLinux, definitions: []definition{
		{version + "gen2", "amd64", 2},
		{version, "amd64", 1},
		{version + "gen2arm64", "arm64", 2},
	}, trusted: []definition{{version + "gen2TL", "amd64", 2}}, fips: []definition{
		{version + "gen2fips", "amd64", 2},
		{version + "fips", "amd64", 1},
	}}
	if version == "V3" {
		r.fips = append(r.fips, definition{"V3gen2arm64fips", "arm64", 2})
	}
	return r
}

// Ubuntu2004 is the name of the release that exists for FIPS alone.
const Ubuntu2004 = "Ubuntu2004"

func ubuntu2004() Release {
	return Release{
		Name: Ubuntu2004, gallery: GalleryUbuntu, fips: []definition{{"2004gen2fipscontainerd", "amd64", 2}, {"2004fipscontainerd", "amd64", 1}},
	}
}

// ReleaseFor says which release a class means. Family Ubuntu with FIPS is 20.04,
// and with trusted launch 22.04, whatever the Kubernetes version.
func ReleaseFor(class *nodeclass.NodeClass, kubernetesVersion string) (Release, error) {
	if class.FIPS && (class.ImageFamily == "Ubuntu" || class.ImageFamily == "") {
		if class.TrustedLaunch() {
			return ubuntu("Ubuntu2204", "2204"), nil
		}
		return ubuntu2004(), nil
	}
	return ReleaseOf(class.ImageFamily, kubernetesVersion)
}

// ReleaseOf says which release a family means for a Kubernetes version.
func ReleaseOf(family, kubernetesVersion string) (Release, error) {
	major, minor, err := minorOf(kubernetesVersion)
	if err != nil {
		return Release{}, err
	}
	atLeast := func(m int) bool { return major > 1 || minor >= m }
	switch family {
	case "Ubuntu2204":
		return ubuntu("Ubuntu2204", "2204"), nil
	case "Ubuntu2404":
		return ubuntu("Ubuntu2404", "2404"), nil
	case "Ubuntu", "":
		if atLeast(34) {
			return ubuntu("Ubuntu2404", "2404"), nil
		}
		return ubuntu("Ubuntu2204", "2204"), nil
	case "AzureLinux":
		if atLeast(32) {
			return azureLinux("AzureLinux3", "V3"), nil
		}
		return azureLinux("AzureLinux2", "V2"), nil
	}
	return Release{}, fmt.Errorf("image family %q is unknown; allowed are Ubuntu, Ubuntu2204, Ubuntu2404, AzureLinux", family)
}

// AtLeast reports whether a Kubernetes version is 1.minor or later.
func AtLeast(kubernetesVersion string, minor int) bool {
	major, has, err := minorOf(kubernetesVersion)
	return err == nil && (major > 1 || has >= minor)
}

func minorOf(version string) (major, minor int, err error) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) >= 2 {
		var err1, err2 error
		major, err1 = strconv.Atoi(parts[0])
		minor, err2 = strconv.Atoi(strings.TrimRight(parts[1], "+"))
		if err1 == nil && err2 == nil {
			return major, minor, nil
		}
	}
	return 0, 0, fmt.Errorf("kubernetes version %q is not of the form 1.34.2", version)
}

// Definitions are the images that a class may use with a Kubernetes version, in order of
// preference, without looking which versions of them there are: each has the class's
// version, or is named newest.
func Definitions(class *nodeclass.NodeClass, kubernetesVersion string) ([]nodeclass.Image, error) {
	release, err := ReleaseFor(class, kubernetesVersion)
	if err != nil {
		return nil, err
	}
	version := class.ImageVersion
	if version == "" {
		version = "newest"
	}
	var out []nodeclass.Image
	for _, d := range release.of(class) {
		out = append(out, nodeclass.Image{
			ID: Galleries{}.id(galleryOf(release.gallery), d.name, version), Definition: d.name, Arch: d.arch, Generation: d.generation,
		})
	}
	return out, nil
}

// of are the definitions that a class may use, in order of preference.
func (r Release) of(class *nodeclass.NodeClass) []definition {
	switch {
	case class.FIPS && class.TrustedLaunch():
		return r.fipsTrusted
	case class.FIPS:
		return r.fips
	case class.TrustedLaunch():
		return r.trusted
	}
	return r.definitions
}
