package image

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"

	"github.com/nodeautoprovision/nap/internal/azure/resourcelist"
)

// versionsVersion is the version of AKS's list of node image versions, which the
// SDK does not have.
const versionsVersion = "2026-04-02-preview"

// Shared lists what AKS's shared image galleries hold in a region, FIPS images
// included.
type Shared struct {
	arm          *arm.Client
	path         string
	subscription string // of the galleries
}

// NewShared returns the list of a region, asked for as subscription; the galleries
// are in another one.
func NewShared(subscription, region, galleries string, credential azcore.TokenCredential, options *arm.ClientOptions) (*Shared, error) {
	client, err := arm.NewClient("nap/nodeimages", "v1.0.0", credential, options)
	if err != nil {
		return nil, err
	}
	path := "/subscriptions/" + subscription + "/providers/Microsoft.ContainerService/locations/" + region + "/nodeImageVersions"
	return &Shared{client, path, galleries}, nil
}

// list reads all versions, by gallery/definition.
func (s *Shared) list(ctx context.Context) (map[string][]version, error) {
	type listed struct {
		OS      string `json:"os"`
		SKU     string `json:"sku"`
		Version string `json:"version"`
	}
	all, err := resourcelist.Read[listed](ctx, s.arm, s.path, versionsVersion)
	if err != nil {
		return nil, fmt.Errorf("list AKS's node image versions: %w", err)
	}
	out := map[string][]version{}
	for _, v := range all {
		key := v.OS + "/" + v.SKU
		out[key] = append(out[key], version{name: v.Version})
	}
	return out, nil
}
