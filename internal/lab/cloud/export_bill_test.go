//go:build scale

package cloud

import (
	"context"
	"net/http"

	"github.com/nodeautoprovision/nap/internal/armsim"
)

// Billed is what the simulated Azure has billed so far, in dollars.
func (c *Client) Billed(ctx context.Context) (float64, error) {
	var bill armsim.Bill
	err := c.do(ctx, http.MethodGet, "bill", nil, &bill)
	return bill.Total(), err
}
