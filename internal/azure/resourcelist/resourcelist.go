// Package resourcelist reads lists of Azure Resource Manager that the SDK's clients do not
// have, or decode with more than nap reads. Use [Read].
package resourcelist

import (
	"context"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// page is one page of a list.
type page[T any] struct {
	Value    []T    `json:"value"`
	NextLink string `json:"nextLink"`
}

// Read reads all pages of the list at path, whose parts are escaped where they need it, in a
// version of the API. Where Azure may answer null for an entry, T is a pointer. It fails with
// what Azure answers, an azcore.ResponseError, and leaves out the pages before.
func Read[T any](ctx context.Context, client *arm.Client, path, version string) ([]T, error) {
	first := func(ctx context.Context) (*policy.Request, error) {
		request, err := runtime.NewRequest(ctx, http.MethodGet, runtime.JoinPaths(client.Endpoint(), path))
		if err != nil {
			return nil, err
		}
		request.Raw().URL.RawQuery = "api-version=" + version
		request.Raw().Header.Set("Accept", "application/json")
		return request, nil
	}
	var out []T
	for next, more := "", true; more; more = next != "" {
		answer, err := runtime.FetcherForNextLink(ctx, client.Pipeline(), next, first, nil)
		if err != nil {
			return nil, err
		}
		var p page[T]
		if err := runtime.UnmarshalAsJSON(answer, &p); err != nil {
			return nil, err
		}
		out, next = append(out, p.Value...), p.NextLink
	}
	return out, nil
}
