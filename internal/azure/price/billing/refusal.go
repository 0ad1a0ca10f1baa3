package billing

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/nodeautoprovision/nap/internal/azure/price/pricesheet"
)

// Refusal says that Azure does not give something and will not when it is asked again.
type Refusal struct {
	// What is not to be had, Why in a clause, and what to do about it.
	What, Why, Next string
	// Retail says that nothing is missing: the subscription pays retail prices.
	Retail bool
}

func (r *Refusal) Error() string { return r.What + ": " + r.Why + "; " + r.Next }

// definite reports whether Azure answered in a way that will stay: no right, or no such
// thing. Azure writes both in many ways: 401 for a role that may not see prices, 400, 404
// and 422 for an agreement that the API does not serve.
func definite(err error) bool {
	switch status(err) {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// forbidden reports whether a right is missing.
func forbidden(err error) bool {
	s := status(err)
	return s == http.StatusUnauthorized || s == http.StatusForbidden
}

// status is that of an answer of Azure; 0 where there was none.
func status(err error) int {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return 0
	}
	return answer.StatusCode
}

// short is an error of Azure in one line.
func short(err error) error {
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		return err
	}
	code := answer.ErrorCode
	if code == "" || code == fmt.Sprint(answer.StatusCode) { // some of the APIs have no other
		code = http.StatusText(answer.StatusCode)
	}
	said := fmt.Errorf("Azure answers %d %s", answer.StatusCode, code) //nolint:staticcheck // Azure is a name
	if answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("%w; nothing is wrong here, run this again later", said)
	}
	return said
}

// byHand is what gives a sheet that the API does not give.
const byHand = "download it in the portal (Cost Management + Billing, Usage + charges) and give it with --price-sheet FILE"

func (r *Reader) sheetName() string { return "the price sheet of subscription " + r.subscription }

// refusedSheet is the error of the sheet of an Enterprise Agreement.
func (r *Reader) refusedSheet(err error) error {
	switch {
	case forbidden(err):
		return &Refusal{What: r.sheetName(), Why: short(err).Error() + ", the right Microsoft.Consumption/pricesheets/read is missing",
			Next: "have the role Billing Reader assigned on the subscription, and an Enterprise Administrator " +
				"switch on AO view charges; or " + byHand}
	case definite(err):
		return r.noSheet(short(err).Error())
	}
	return fmt.Errorf("read the price sheet of subscription %s: %w", r.subscription, short(err))
}

// noSheet says that there is none, for all that can be seen.
func (r *Reader) noSheet(why string) *Refusal {
	return &Refusal{What: r.sheetName(), Why: why + ": Azure has none for this subscription",
		Next: "where it is paid for as you go, retail prices hold and nothing is missing; where prices are agreed, " + byHand}
}

// retail says that there is no price sheet because nothing was agreed.
func (r *Reader) retail() *Refusal {
	return &Refusal{Retail: true, What: r.sheetName(), Why: "it is paid for as you go and has none (agreement MicrosoftOnlineServicesProgram)",
		Next: "retail prices hold"}
}

// sold says that a partner sells the subscription, whose prices Azure does not tell: its
// price sheet would be what the partner pays.
func (r *Reader) sold() *Refusal {
	return &Refusal{What: r.sheetName(), Why: "a partner sells it and sets its prices (agreement MicrosoftPartnerAgreement)",
		Next: "state what was agreed with the partner as prices or discounts by hand (docs/prices.md)"}
}

// refusedProfile is the error of the sheet of a billing profile.
func (r *Reader) refusedProfile(a agreement, err error) error {
	what := fmt.Sprintf("the price sheet of billing profile %s, which pays for subscription %s", a.profile, r.subscription)
	switch {
	case forbidden(err):
		return &Refusal{What: what, Why: short(err).Error() + ", a role of the billing profile is missing",
			Next: "have the role Billing profile reader assigned on it (Cost Management + Billing, Access control); or " + byHand}
	case definite(err):
		return &Refusal{What: what, Why: short(err).Error(), Next: byHand}
	}
	return fmt.Errorf("read %s: %w", what, short(err))
}

// refusedCurrency says what to do about a sheet in another currency than US dollars.
func (r *Reader) refusedCurrency(e *pricesheet.CurrencyError) *Refusal {
	return &Refusal{What: r.sheetName(),
		Why:  fmt.Sprintf("it is in %s, and nap plans in US dollars", cmp.Or(e.Currency, "no currency that it names")),
		Next: "state what was agreed as discounts by hand (docs/prices.md)"}
}

// refusedReservations is the error of the list of reservations.
func (r *Reader) refusedReservations(err error) error {
	const what = "the list of reservations"
	const byFile = "have who may list them run az reservations list -o json, and give that with --reservations FILE"
	switch {
	case forbidden(err):
		return &Refusal{What: what, Why: short(err).Error() + ", the right Microsoft.Capacity/reservations/read is missing",
			Next: "have the role Reservations Reader assigned on /providers/Microsoft.Capacity; or " + byFile}
	case definite(err):
		return &Refusal{What: what, Why: short(err).Error(), Next: byFile}
	}
	return fmt.Errorf("read %s: %w", what, short(err))
}
