// Package resourcelist reads lists of Azure Resource Manager that the SDK's clients do not
// have, or decode with more than nap reads. Use [Read].
package resourcelist

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// attempts is how often a page is asked for whose body breaks off. The pipeline tries again
// where there is no whole answer, but here it leaves the body to its reader.
const attempts = 3

// Read reads all pages of the list at path, whose parts are escaped where they need it, in a
// version of the API. Where Azure may answer null for an entry, T is a pointer. It fails with
// what Azure answers, an azcore.ResponseError, or on an answer that is no list, and leaves out
// the pages before. Entries are decoded as they come: a page may have megabytes.
func Read[T any](ctx context.Context, client *arm.Client, path, version string) ([]T, error) {
	first := func(ctx context.Context) (*policy.Request, error) {
		request, err := runtime.NewRequest(ctx, http.MethodGet, runtime.JoinPaths(client.Endpoint(), path))
		if err != nil {
			return nil, err
		}
		request.Raw().URL.RawQuery = "api-version=" + version
		return streamed(request), nil
	}
	further := func(ctx context.Context, link string) (*policy.Request, error) {
		request, err := runtime.NewRequest(ctx, http.MethodGet, link)
		if err != nil {
			return nil, err
		}
		return streamed(request), nil
	}
	fetch := func(link string) (*http.Response, error) {
		return runtime.FetcherForNextLink(ctx, client.Pipeline(), link, first, &runtime.FetcherForNextLinkOptions{NextReq: further})
	}
	var out []T
	seen := map[string]bool{}
	for link, more := "", true; more; more = link != "" {
		if seen[link] {
			return nil, fmt.Errorf("read the answer to GET %s: page %d names an earlier page as the next one", path, len(seen))
		}
		seen[link] = true
		have := len(out)
		var next string
		for attempt := 1; ; attempt++ {
			answer, err := fetch(link)
			if err != nil {
				return nil, err
			}
			if out, next, err = decode(answer.Body, out[:have]); err == nil {
				break
			}
			if !errors.Is(err, errBrokeOff) || ctx.Err() != nil || attempt == attempts {
				return nil, fmt.Errorf("read the answer to GET %s: %w", path, err)
			}
		}
		link = next
	}
	return out, nil
}

// streamed makes the pipeline leave the body of a whole answer to its reader.
func streamed(request *policy.Request) *policy.Request {
	request.Raw().Header.Set("Accept", "application/json")
	runtime.SkipBodyDownload(request)
	return request
}
