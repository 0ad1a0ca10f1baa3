// Package billing asks Azure what a subscription has agreed with it: its price sheet and
// the reservations which may pay for its machines. It writes nothing, in Azure or on disk.
//
// Which API gives the price sheet follows from the agreement, which the billing property of
// the subscription names: Consumption, Price Sheet, by subscription under an Enterprise
// Agreement; Cost Management, Price Sheet, by billing profile under a Microsoft Customer
// Agreement, as a file that Azure makes first.
//
//   - billing.go: the reader
//   - sheet.go: price sheets
//   - refusal.go: what Azure does not give, and what to do about it
package billing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/billing/armbilling"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/consumption/armconsumption"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/costmanagement/armcostmanagement/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/reservations/armreservations"
)

// Reader reads of one subscription.
type Reader struct {
	subscription string
	properties   *armbilling.PropertyClient
	sheets       *armconsumption.PriceSheetClient
	downloads    *armcostmanagement.PriceSheetClient
	reservations *armreservations.ReservationClient
	// say tells what takes long.
	say func(string)
	// files fetches what Azure has made for download, whose addresses need no credential.
	files runtime.Pipeline
}

// New makes a reader that signs in with a credential, and tells with say what takes long.
func New(subscription string, credential azcore.TokenCredential, options *arm.ClientOptions, say func(string)) (*Reader, error) {
	r := &Reader{subscription: subscription, say: say}
	var errs [4]error
	r.properties, errs[0] = armbilling.NewPropertyClient(subscription, credential, options)
	r.sheets, errs[1] = armconsumption.NewPriceSheetClient(subscription, credential, options)
	r.downloads, errs[2] = armcostmanagement.NewPriceSheetClient(credential, options)
	r.reservations, errs[3] = armreservations.NewReservationClient(credential, options)
	r.files = runtime.NewPipeline("nap", "", runtime.PipelineOptions{},
		&policy.ClientOptions{Transport: options.Transport, Retry: options.Retry, Telemetry: options.Telemetry})
	return r, errors.Join(errs[:]...)
}

// Reservations are all that the signed-in account may see, as JSON in the form that
// az reservations list has. Where Azure does not give them, the error is a [*Refusal].
func (r *Reader) Reservations(ctx context.Context) ([]byte, error) {
	all := []json.RawMessage{}
	for pager := r.reservations.NewListAllPager(nil); pager.More(); {
		var answer *http.Response
		if _, err := pager.NextPage(policy.WithCaptureResponse(ctx, &answer)); err != nil {
			return nil, r.refusedReservations(err)
		}
		text, err := runtime.Payload(answer)
		if err != nil {
			return nil, fmt.Errorf("read reservations: %w", err)
		}
		var page struct {
			Value []json.RawMessage `json:"value"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, fmt.Errorf("read reservations: %w", err)
		}
		all = append(all, page.Value...)
	}
	return json.Marshal(all)
}
