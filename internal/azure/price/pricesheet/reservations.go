package pricesheet

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/price"
)

// Reservations are the machines that a list of reservations has paid for in a region.
type Reservations struct {
	// Machines are counted by size, at $0 an hour: the money is spent in any case.
	Machines []price.Reservation
	// Notes say of single reservations what a person should know: that one counts for
	// nothing and why, or where it counts.
	Notes []string
}

// reservation is one of the list. Each field stands at the top or in properties: az and the
// API write properties, az with a query often does not.
type reservation struct {
	fields
	Name       string `json:"name"`
	Location   string `json:"location"`
	SKU        sku    `json:"sku"`
	Properties fields `json:"properties"`
}

type sku struct {
	Name string `json:"name"`
}

type fields struct {
	DisplayName          string   `json:"displayName"`
	ReservedResourceType string   `json:"reservedResourceType"`
	Quantity             int      `json:"quantity"`
	ProvisioningState    string   `json:"provisioningState"`
	ExpiryDate           string   `json:"expiryDate"`
	AppliedScopeType     string   `json:"appliedScopeType"`
	AppliedScopes        []string `json:"appliedScopes"`
	InstanceFlexibility  string   `json:"instanceFlexibility"`
}

// ReadReservations reads the reservations of virtual machines in a region that are in force
// at now. An error says what is wrong with the file or with which reservation.
func ReadReservations(r io.Reader, region string, now time.Time) (*Reservations, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	list, err := parseReservations(text)
	if err != nil {
		return nil, err
	}
	out, counts := &Reservations{}, map[string]int{}
	for i := range list {
		one := &list[i]
		why, err := one.unused(region, now)
		if err != nil {
			return nil, err
		}
		if why != "" {
			out.Notes = append(out.Notes, fmt.Sprintf("reservation %s counts for nothing: %s", one.title(), why))
			continue
		}
		counts[one.SKU.Name] += cmp.Or(one.Quantity, one.Properties.Quantity)
		if note := one.note(); note != "" {
			out.Notes = append(out.Notes, fmt.Sprintf("reservation %s: %s", one.title(), note))
		}
	}
	for _, size := range slices.Sorted(maps.Keys(counts)) {
		out.Machines = append(out.Machines, price.Reservation{Size: size, Count: counts[size]})
	}
	return out, nil
}

func parseReservations(text []byte) ([]reservation, error) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	var answer struct {
		Value    []reservation `json:"value"`
		NextLink string        `json:"nextLink"`
	}
	var err error
	if bytes.HasPrefix(text, []byte("[")) {
		err = decode(text, &answer.Value)
	} else {
		err = decode(text, &answer)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("it is no list of reservations: %w; give what az reservations list -o json prints", err)
	case answer.NextLink != "":
		return nil, fmt.Errorf("it is one page of several: the next is %s; "+
			"give the whole list, as az reservations list -o json prints it", answer.NextLink)
	}
	return answer.Value, nil
}

func (r *reservation) title() string {
	name := cmp.Or(r.DisplayName, r.Properties.DisplayName, r.Name, "without a name")
	if r.SKU.Name == "" {
		return name
	}
	return fmt.Sprintf("%s (%d %s)", name, cmp.Or(r.Quantity, r.Properties.Quantity), r.SKU.Name)
}

// unused says why a reservation pays for no machine in the region now; empty where it does.
func (r *reservation) unused(region string, now time.Time) (string, error) {
	kind := cmp.Or(r.ReservedResourceType, r.Properties.ReservedResourceType)
	state := cmp.Or(r.ProvisioningState, r.Properties.ProvisioningState)
	expiry := cmp.Or(r.ExpiryDate, r.Properties.ExpiryDate)
	quantity := cmp.Or(r.Quantity, r.Properties.Quantity)
	there, _ := price.RegionName(r.Location) // an unknown name is another region
	switch {
	case !strings.EqualFold(kind, "VirtualMachines"):
		return fmt.Sprintf("it is of %s", cmp.Or(kind, "an unknown kind")), nil
	case !strings.EqualFold(state, "Succeeded"):
		return fmt.Sprintf("its state is %s", cmp.Or(state, "unknown")), nil
	case there != region:
		return fmt.Sprintf("it is for region %s", cmp.Or(r.Location, "(none)")), nil
	case r.SKU.Name == "" || quantity < 1:
		return "", fmt.Errorf("reservation %s: sku.name is %q and properties.quantity is %d; a size and a number from 1 on are needed",
			r.title(), r.SKU.Name, quantity)
	}
	if expiry == "" {
		return "", nil
	}
	ends, err := row{fields: map[string]string{"expirydate": expiry}}.date("expiryDate")
	if err != nil {
		return "", fmt.Errorf("reservation %s: %w", r.title(), err)
	}
	if ends.Before(now) {
		return "it ended on " + ends.Format(time.DateOnly), nil
	}
	return "", nil
}

// note says what about a reservation in use nap cannot know or does not use.
func (r *reservation) note() string {
	var notes []string
	if kind := cmp.Or(r.AppliedScopeType, r.Properties.AppliedScopeType); strings.EqualFold(kind, "Single") {
		scopes := append(slices.Clone(r.AppliedScopes), r.Properties.AppliedScopes...)
		notes = append(notes, fmt.Sprintf("it pays for machines in %s alone: take it out of the file where the cluster is elsewhere",
			cmp.Or(strings.Join(scopes, ", "), "one subscription")))
	}
	if cmp.Or(r.InstanceFlexibility, r.Properties.InstanceFlexibility) == "On" {
		notes = append(notes, "it would pay for other sizes of its group, too; nap counts it for its own size")
	}
	return strings.Join(notes, "; ")
}
