package config

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// tokenFor is how long a token is believed, whatever it says of itself: those of
// managed identities say a day, in which clocks are set and permissions change.
const tokenFor = 2 * time.Hour

// ShortLived is a credential whose tokens are asked for again after two hours at the
// latest.
func ShortLived(credential azcore.TokenCredential, now func() time.Time) azcore.TokenCredential {
	return shortLived{credential, now}
}

type shortLived struct {
	azcore.TokenCredential
	now func() time.Time
}

// GetToken implements azcore.TokenCredential.
func (s shortLived) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := s.TokenCredential.GetToken(ctx, options)
	if end := s.now().Add(tokenFor); token.ExpiresOn.After(end) {
		token.ExpiresOn = end
	}
	if !token.RefreshOn.Before(token.ExpiresOn) {
		token.RefreshOn = time.Time{} // then the SDK chooses a time before the end
	}
	return token, err
}
