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
)

// diskSetFor is how long a disk encryption set that could be read is believed.
const diskSetFor = time.Hour

// Errors of ValidateDiskEncryption.
var (
	ErrDiskSetForbidden = errors.New("the disk encryption set may not be read")
	ErrDiskSetNotFound  = errors.New("the disk encryption set does not exist")
)

// diskSetMemo is when the disk encryption set could last be read.
type diskSetMemo struct {
	mu sync.Mutex
	at time.Time
}

// ValidateDiskEncryption checks that the cluster's disk encryption set, where there
// is one, exists and may be read: without that Azure refuses every machine. The
// error is ErrDiskSetForbidden, ErrDiskSetNotFound, or what kept Azure from
// answering.
func (p *Provider) ValidateDiskEncryption(ctx context.Context) error {
	id := p.config.DiskEncryptionSetID
	if id == "" {
		return nil
	}
	p.diskSet.mu.Lock()
	defer p.diskSet.mu.Unlock() // one asks, the others wait for its answer
	if !p.diskSet.at.IsZero() && p.now().Sub(p.diskSet.at) < diskSetFor {
		return nil
	}
	set, err := arm.ParseResourceID(id)
	if err != nil {
		return fmt.Errorf("NODE_OSDISK_DISKENCRYPTIONSET_ID: %w", err)
	}
	_, err = p.clients.diskSets.Get(ctx, set.ResourceGroupName, set.Name, nil)
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return fmt.Errorf("%w: %s; give nap's identity the role Reader on it", ErrDiskSetForbidden, id)
		case http.StatusNotFound:
			return fmt.Errorf("%w: %s; correct NODE_OSDISK_DISKENCRYPTIONSET_ID", ErrDiskSetNotFound, id)
		}
	}
	if err != nil {
		return fmt.Errorf("read disk encryption set %s: %w", id, err)
	}
	p.diskSet.at = p.now()
	return nil
}
