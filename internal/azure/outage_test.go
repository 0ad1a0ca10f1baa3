package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	"github.com/nodeautoprovision/nap/internal/azure/ratelimit"
)

func TestOutageIsNoRefusal(t *testing.T) {
	answer := func(status int) error {
		return fmt.Errorf("read the cluster: %w", &azcore.ResponseError{StatusCode: status})
	}
	signIn := func(status int) error {
		return &azidentity.AuthenticationFailedError{RawResponse: &http.Response{StatusCode: status, Body: http.NoBody}}
	}
	sent := func(err error) error { return &url.Error{Op: "Get", URL: "https://management.azure.com", Err: err} }
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"server error": {answer(503), true}, "throttled": {answer(429), true}, "timeout": {answer(408), true},
		"forbidden": {answer(403), false}, "not found": {answer(404), false}, "sign-in is out": {signIn(502), true},
		"sign-in is refused": {signIn(401), false}, "not connected": {sent(&net.OpError{Op: "dial", Err: errors.New("refused")}), true},
		"no name": {sent(&net.DNSError{Err: "no such host"}), true}, "cut off": {sent(io.ErrUnexpectedEOF), true},
		"late": {fmt.Errorf("read: %w", context.DeadlineExceeded), true}, "no trust": {sent(errors.New("x509: unknown authority")), false},
		"a setting": {errors.New("LOCATION: must be set"), false}, "joined": {errors.Join(errors.New("a"), answer(500)), true},
		"known to be out": {fmt.Errorf("read: %w", &ratelimit.Outage{}), true},
	} {
		if got := IsOutage(tc.err); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
