// Package billing is how the simulated subscription is paid for: the billing property of
// Microsoft.Billing, the price sheets of Microsoft.Consumption and
// Microsoft.CostManagement, and the reservations of Microsoft.Capacity.
//
// Which price sheet there is follows from the agreement, as in the real Azure: under an
// Enterprise Agreement pages by subscription, under a Microsoft Customer Agreement a file
// by billing profile, which is made while the client polls; else none.
//
//   - billing.go: the provider and how it is configured
//   - sheet.go: price sheets
//   - reservations.go: reservations
package billing

import (
	"cmp"
	"net/http"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/armsim/retailprices"
)

// The agreements under which a subscription can be paid for.
const (
	PayAsYouGo = "MicrosoftOnlineServicesProgram"
	Enterprise = "EnterpriseAgreement"
	Customer   = "MicrosoftCustomerAgreement"
	Partner    = "MicrosoftPartnerAgreement"
)

// Config is how the subscription is paid for. The zero value pays as you go.
type Config struct {
	Agreement string  // one of these; default PayAsYouGo
	Currency  string  // of the price sheet; default USD
	Discount  float64 // percent off the retail prices
	// Reservations are those of the tenant, whatever they are for.
	Reservations []Reservation
}

// Reservation is machines that are bought in advance.
type Reservation struct {
	Name, Size, Region string
	Quantity           int
	Scopes             []string  // subscriptions or resource groups; none means shared
	Ends               time.Time // the day; zero is one year from the start of 2026
	State              string    // default Succeeded
}

// Names of the billing account and profile. The form of the first is that of the agreement.
const (
	enrollment      = "1234567"
	customerAccount = "7c05a543-80ff-571e-9f98-1063b3b53cf2:99ad03ad-2d1b-4889-a452-090ad407d25f_2019-05-31"
	profile         = "2USN-TPCD-BG7-TGB"
)

// Provider is all that has to do with billing.
type Provider struct {
	sub    *arm.Subscription
	config Config
	// generation is how long a price sheet takes to be made for download.
	generation arm.Distribution
	// meters are what machines of the region are billed by, at retail prices.
	meters func() []retailprices.Meter
}

// New makes the provider of a subscription. A price sheet takes generation to be made for
// download; meters are those of the region.
func New(sub *arm.Subscription, c Config, generation arm.Distribution, meters func() []retailprices.Meter) *Provider {
	c.Agreement, c.Currency = cmp.Or(c.Agreement, PayAsYouGo), cmp.Or(c.Currency, "USD")
	sub.Tasks.On(taskMade, func(t arm.Task) { sub.Operations.Finish(t.Op, nil) })
	return &Provider{sub: sub, config: c, generation: generation, meters: meters}
}

// Routes are the rows of the provider.
func (p *Provider) Routes() []arm.Route {
	return []arm.Route{
		{Method: http.MethodGet, Type: "Microsoft.Billing/billingProperty", Item: true, Scope: arm.SubscriptionScope,
			Versions: []string{"2024-04-01"}, Handle: p.property},
		{Method: http.MethodGet, Type: typeSheet, Item: true, Scope: arm.SubscriptionScope,
			Versions: []string{"2021-10-01"}, Handle: p.sheetOfSubscription},
		{Method: http.MethodPost, Type: "Microsoft.CostManagement/pricesheets/download", Scope: arm.AnyScope,
			Versions: []string{"2022-10-01"}, Handle: p.download},
		{Method: http.MethodGet, Type: "Microsoft.CostManagement/operationResults", Item: true, Scope: arm.AnyScope,
			Versions: []string{"2022-10-01"}, Handle: p.downloadResult, Open: true},
		{Method: http.MethodGet, Type: typeReservation, Scope: arm.TenantScope,
			Versions: []string{"2022-03-01"}, Handle: p.listReservations},
	}
}

// Endpoints are the rows beside ARM: the storage of what is made for download.
func (p *Provider) Endpoints() []arm.Endpoint {
	return []arm.Endpoint{{Method: http.MethodGet, Path: filesPath + "{file}", Operation: "storage/blobs", Handle: p.file}}
}

// property tells how the subscription is billed.
func (p *Provider) property(c *arm.Call) (arm.Reply, error) {
	if err := onlyDefault(c.Path); err != nil {
		return arm.Reply{}, err
	}
	account := "00000000-0000-0000-0000-000000000000"
	properties := arm.Document{"billingAccountAgreementType": p.config.Agreement, "billingAccountDisplayName": "Contoso"}
	switch p.config.Agreement {
	case Enterprise:
		account = enrollment
		properties["billingCurrency"], properties["billingAccountType"] = p.config.Currency, "Enterprise"
	case Customer, Partner:
		account = customerAccount
		properties["billingProfileId"] = accountPath(account) + "/billingProfiles/" + profile
		properties["billingProfileDisplayName"], properties["billingAccountType"] = "Contoso", "Business"
	default:
		properties["billingAccountType"] = "Individual"
	}
	properties["billingAccountId"] = accountPath(account)
	return arm.Reply{Status: http.StatusOK, Body: arm.Stamp(c.Path, arm.Document{"properties": properties})}, nil
}

func accountPath(name string) string { return "/providers/Microsoft.Billing/billingAccounts/" + name }

// onlyDefault refuses an item of another name than that of the only one there is.
func onlyDefault(p arm.Path) error {
	if p.Name() == "default" {
		return nil
	}
	return arm.NewError(http.StatusNotFound, "NotFound", "The resource '%s' was not found.", p.Relative())
}
