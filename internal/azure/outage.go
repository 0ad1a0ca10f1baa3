package azure

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/nodeautoprovision/nap/internal/azure/ratelimit"
)

// IsOutage reports whether an error says that Azure does not answer for now: a server error, too
// many requests, a timeout, or no way there. That passes by itself. What Azure refuses does
// not, and neither does a certificate that is not trusted.
func IsOutage(err error) bool {
	if errors.As(err, new(*ratelimit.Outage)) {
		return true
	}
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return passing(answer.StatusCode)
	}
	var signIn *azidentity.AuthenticationFailedError
	if errors.As(err, &signIn) {
		if signIn.RawResponse != nil {
			return passing(signIn.RawResponse.StatusCode)
		}
		// Without an answer there is but the text of the error: a file that is missing, or a
		// request that got none.
		text := signIn.Error()
		sent := strings.Contains(text, `Post "`) || strings.Contains(text, `Get "`)
		return sent && !strings.Contains(text, "x509:")
	}
	var network *net.OpError
	var name *net.DNSError
	var timed net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) || errors.As(err, &name) ||
		errors.As(err, &timed) && timed.Timeout() || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// passing reports whether a status says that the same request may succeed later.
func passing(status int) bool {
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout
}
