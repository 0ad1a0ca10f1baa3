package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
)

// diskSetFor is how long a disk encryption set that could be read is believed.
const diskSetFor = time.Hour

// Errors of ValidateDiskEncryption.
var (
	ErrDiskSetForbidden = errors.New("the disk encryption set may not be read")
	ErrDiskSetNotFound  = errors.New("the disk encryption set does not exist")
)

// diskSetReader checks the cluster's disk encryption set.
type diskSetReader struct {
	id     string // resource id; empty when the cluster has none
	client *armcompute.DiskEncryptionSetsClient
	now    func() time.Time

	mu sync.Mutex
	at time.Time // when the set could last be read; zero before the first time
}

// ValidateDiskEncryption checks that the cluster's disk encryption set, where there
// is one, exists and may be read: without that Azure refuses every machine. The
// error is ErrDiskSetForbidden, ErrDiskSetNotFound, or what kept Azure from
// answering.
func (p *Provider) ValidateDiskEncryption(ctx context.Context) error {
	return p.diskSet.validate(ctx)
}

// validate implements Provider.ValidateDiskEncryption.
func (d *diskSetReader) validate(ctx context.Context) error {
	if d.id == "" {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock() // one asks, the others wait for its answer
	if !d.at.IsZero() && d.now().Sub(d.at) < diskSetFor {
		return nil
	}
	set, err := arm.ParseResourceID(d.id)
	if err != nil {
		return fmt.Errorf("NODE_OSDISK_DISKENCRYPTIONSET_ID: %w", err)
	}
	_, err = d.client.Get(ctx, set.ResourceGroupName, set.Name, nil)
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("%w: %s; give nap's identity the role Reader on it", ErrDiskSetForbidden, d.id)
		case http.StatusNotFound:
			return fmt.Errorf("%w: %s; correct NODE_OSDISK_DISKENCRYPTIONSET_ID", ErrDiskSetNotFound, d.id)
		}
	}
	if err != nil {
		return fmt.Errorf("read disk encryption set %s: %w", d.id, err)
	}
	d.at = d.now()
	return nil
}
