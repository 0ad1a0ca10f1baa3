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
	// Until is the day on which the first of them ends; zero where none says.
	Until time.Time
}

// Place is where the machines are that reservations are to pay for.
type Place struct {
	Region string
	// Subscription is an id; empty where it is not known.
	Subscription string
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

// ReadReservations reads the reservations which pay for virtual machines at a place now. An
// error says what is wrong with the file or with which reservation.
func ReadReservations(r io.Reader, at Place, now time.Time) (*Reservations, error) {
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
		why, ends, err := one.unused(at, now)
		if err != nil {
			return nil, err
		}
		if why != "" {
			out.Notes = append(out.Notes, fmt.Sprintf("reservation %s counts for nothing: %s", one.title(), why))
			continue
		}
		counts[one.SKU.Name] += cmp.Or(one.Quantity, one.Properties.Quantity)
		if !ends.IsZero() && (out.Until.IsZero() || ends.Before(out.Until)) {
			out.Until = ends
		}
		if note := one.note(at); note != "" {
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

// ends is the day on which it ends; zero where it does not say.
func (r *reservation) ends() (time.Time, error) {
	expiry := cmp.Or(r.ExpiryDate, r.Properties.ExpiryDate)
	ends, err := row{fields: map[string]string{"expirydate": expiry}}.date("expiryDate")
	if err != nil {
		return ends, fmt.Errorf("reservation %s: %w", r.title(), err)
	}
	return ends, nil
}

// unused says why a reservation pays for no machine at the place now; empty where it does,
// until it ends.
func (r *reservation) unused(at Place, now time.Time) (why string, ends time.Time, err error) {
	kind := cmp.Or(r.ReservedResourceType, r.Properties.ReservedResourceType)
	state := cmp.Or(r.ProvisioningState, r.Properties.ProvisioningState)
	quantity := cmp.Or(r.Quantity, r.Properties.Quantity)
	there, _ := price.RegionName(r.Location) // an unknown name is another region
	switch {
	case !strings.EqualFold(kind, "VirtualMachines"):
		return fmt.Sprintf("it is of %s", cmp.Or(kind, "an unknown kind")), ends, nil
	case !strings.EqualFold(state, "Succeeded"):
		return fmt.Sprintf("its state is %s", cmp.Or(state, "unknown")), ends, nil
	case there != at.Region:
		return fmt.Sprintf("it is for region %s", cmp.Or(r.Location, "(none)")), ends, nil
	case at.Subscription != "" && len(r.scopes()) > 0 && len(r.scopesIn(at.Subscription)) == 0:
		return fmt.Sprintf("it pays for machines in %s alone", strings.Join(r.scopes(), ", ")), ends, nil
	case r.SKU.Name == "" || quantity < 1:
		return "", ends, fmt.Errorf("reservation %s: sku.name is %q and properties.quantity is %d; a size and a number from 1 on are needed",
			r.title(), r.SKU.Name, quantity)
	}
	if ends, err = r.ends(); err == nil && !ends.IsZero() && ends.Before(now) {
		why = "it ended on " + ends.Format(time.DateOnly)
	}
	return why, ends, err
}

// scopes are the subscriptions or resource groups whose machines it pays for; none where it
// is shared by all.
func (r *reservation) scopes() []string {
	if !strings.EqualFold(cmp.Or(r.AppliedScopeType, r.Properties.AppliedScopeType), "Single") {
		return nil
	}
	return append(slices.Clone(r.AppliedScopes), r.Properties.AppliedScopes...)
}

// scopesIn are those of a subscription.
func (r *reservation) scopesIn(subscription string) []string {
	of := strings.ToLower("/subscriptions/" + subscription + "/")
	return slices.DeleteFunc(r.scopes(), func(scope string) bool {
		return !strings.HasPrefix(strings.ToLower(scope)+"/", of)
	})
}

// note says what about a reservation in use nap cannot know or does not use.
func (r *reservation) note(at Place) string {
	var notes []string
	only := func(where string) {
		notes = append(notes, fmt.Sprintf("it pays for machines in %s alone: take it out of the file where the cluster is elsewhere", where))
	}
	switch kind := cmp.Or(r.AppliedScopeType, r.Properties.AppliedScopeType); {
	case strings.EqualFold(kind, "ManagementGroup"):
		only("one management group")
	case strings.EqualFold(kind, "Single") && !r.covers(at.Subscription):
		only(cmp.Or(strings.Join(r.scopes(), ", "), "one subscription"))
	}
	if cmp.Or(r.InstanceFlexibility, r.Properties.InstanceFlexibility) == "On" {
		notes = append(notes, "it would pay for other sizes of its group, too; nap counts it for its own size")
	}
	return strings.Join(notes, "; ")
}

// covers reports whether it pays for machines in the whole of a subscription.
func (r *reservation) covers(subscription string) bool {
	return subscription != "" && slices.ContainsFunc(r.scopes(), func(scope string) bool {
		return strings.EqualFold(strings.TrimSuffix(scope, "/"), "/subscriptions/"+subscription)
	})
}
