package billing

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

const (
	typeReservation = "Microsoft.Capacity/reservations"
	// pageReservations is how many reservations a page has at most.
	pageReservations = 100
)

// listReservations lists those of the tenant.
func (p *Provider) listReservations(c *arm.Call) (arm.Reply, error) {
	from, size, err := pageOf(c, "take", pageReservations)
	if err != nil {
		return arm.Reply{}, err
	}
	all := p.config.Reservations
	values := []any{}
	for i := min(from, len(all)); i < min(from+size, len(all)); i++ {
		values = append(values, p.reservation(i, &all[i]))
	}
	body := arm.Document{"value": values}
	if from+size < len(all) {
		q := url.Values{"api-version": {c.Request.URL.Query().Get("api-version")}, "$skiptoken": {strconv.Itoa(from + size)},
			"take": {strconv.Itoa(size)}}
		body["nextLink"] = c.Base() + c.Path.ID() + "?" + q.Encode()
	}
	return arm.Reply{Status: http.StatusOK, Body: body}, nil
}

// reservation is the nth as the API shows it.
func (p *Provider) reservation(n int, r *Reservation) arm.Document {
	order := fmt.Sprintf("5e50000a-0000-4000-8000-%012d", n)
	id := fmt.Sprintf("5e50000b-0000-4000-8000-%012d", n)
	ends := r.Ends
	if ends.IsZero() {
		ends = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	starts := ends.AddDate(-1, 0, 0)
	state := cmp.Or(r.State, "Succeeded")
	properties := arm.Document{
		"displayName": r.Name, "reservedResourceType": "VirtualMachines", "quantity": r.Quantity, "term": "P1Y",
		"provisioningState": state, "displayProvisioningState": state, "appliedScopeType": "Shared", "userFriendlyAppliedScopeType": "Shared",
		"effectiveDateTime": arm.Timestamp(starts), "benefitStartTime": arm.Timestamp(starts), "expiryDate": ends.Format(time.DateOnly),
		"purchaseDate": starts.Format(time.DateOnly), "instanceFlexibility": "Off", "billingPlan": "Upfront", "archived": false, "renew": false,
		"billingScopeId": p.sub.Path(), "skuDescription": "Reserved VM Instance, " + r.Size,
	}
	if len(r.Scopes) > 0 {
		properties["appliedScopeType"], properties["userFriendlyAppliedScopeType"] = "Single", "Single"
		properties["appliedScopes"] = arm.Texts(r.Scopes)
	}
	return arm.Document{
		"id":   "/providers/Microsoft.Capacity/reservationOrders/" + order + "/reservations/" + id,
		"name": order + "/" + id, "type": "Microsoft.Capacity/reservationOrders/reservations", "etag": 1,
		"location": r.Region, "sku": arm.Document{"name": r.Size}, "properties": properties,
	}
}
