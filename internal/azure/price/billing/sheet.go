package billing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/billing/armbilling"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/consumption/armconsumption"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/costmanagement/armcostmanagement/v2"

	"github.com/nodeautoprovision/nap/internal/azure/price/pricesheet"
)

// Sheet reads the price sheet that is in force at now, all of its pages. Where Azure gives
// none, the error is a [*Refusal].
func (r *Reader) Sheet(ctx context.Context, now time.Time) (*pricesheet.Sheet, error) {
	sheet := pricesheet.New()
	agreed, err := r.agreement(ctx)
	switch {
	case err != nil:
		return nil, err
	case agreed.kind == armbilling.AgreementTypeMicrosoftOnlineServicesProgram:
		return nil, r.retail()
	case agreed.kind == armbilling.AgreementTypeMicrosoftPartnerAgreement:
		return nil, r.sold()
	case agreed.profile != "":
		err = r.ofProfile(ctx, agreed, sheet, now)
	default:
		err = r.ofSubscription(ctx, sheet, now)
	}
	var currency *pricesheet.CurrencyError
	if errors.As(err, &currency) {
		return nil, r.refusedCurrency(currency)
	}
	if err != nil {
		return nil, err
	}
	return sheet, nil
}

// agreement is how a subscription is billed.
type agreement struct {
	kind             armbilling.AgreementType // empty where Azure does not tell
	account, profile string                   // names; profile is empty under an Enterprise Agreement
}

// agreement reads it. Where Azure refuses, the agreement is not known, and the price sheet
// shows whether there is one.
func (r *Reader) agreement(ctx context.Context) (agreement, error) {
	answer, err := r.properties.Get(ctx, nil)
	if err != nil && definite(err) {
		return agreement{}, nil
	}
	if err != nil {
		return agreement{}, fmt.Errorf("read how subscription %s is billed: %w", r.subscription, short(err))
	}
	p := answer.Properties
	if p == nil {
		return agreement{}, nil
	}
	out := agreement{account: lastName(p.BillingAccountID), profile: lastName(p.BillingProfileID)}
	if p.BillingAccountAgreementType != nil {
		out.kind = *p.BillingAccountAgreementType
	}
	if out.kind == armbilling.AgreementTypeEnterpriseAgreement {
		out.profile = ""
	}
	return out, nil
}

// lastName is the name at the end of a resource ID.
func lastName(id *string) string {
	if id == nil {
		return ""
	}
	return (*id)[strings.LastIndexByte(*id, '/')+1:]
}

// ofSubscription reads the sheet of an Enterprise Agreement, page by page.
func (r *Reader) ofSubscription(ctx context.Context, sheet *pricesheet.Sheet, now time.Time) error {
	options, lines, seen := &armconsumption.PriceSheetClientGetOptions{}, 0, map[string]bool{}
	for {
		var raw *http.Response
		answer, err := r.sheets.Get(policy.WithCaptureResponse(ctx, &raw), options)
		if err != nil {
			return r.refusedSheet(err)
		}
		text, err := runtime.Payload(raw)
		if err != nil {
			return fmt.Errorf("read the price sheet of subscription %s: %w", r.subscription, err)
		}
		page := answer.Properties
		if page != nil && len(page.Pricesheets) > 0 {
			lines += len(page.Pricesheets)
			if err := sheet.Read(bytes.NewReader(text), now); err != nil {
				return fmt.Errorf("read the price sheet of subscription %s: page %d: %w", r.subscription, len(seen)+1, err)
			}
		}
		if page == nil || page.NextLink == nil || *page.NextLink == "" {
			break
		}
		token, err := skipToken(*page.NextLink)
		if err == nil && seen[token] {
			err = errors.New("it is one that was read before: the pages do not end")
		}
		if err != nil {
			return fmt.Errorf("read the price sheet of subscription %s: the page after %d: %w", r.subscription, len(seen)+1, err)
		}
		seen[token], options.Skiptoken = true, &token
	}
	sheet.More = false // every page was read
	if lines == 0 {
		return r.noSheet("it is empty")
	}
	return nil
}

// skipToken is where the page begins that a link leads to.
func skipToken(link string) (string, error) {
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	token := u.Query().Get("$skiptoken")
	if token == "" {
		return "", fmt.Errorf("the link to it has no $skiptoken: %s", link)
	}
	return token, nil
}

// ofProfile has Azure make the sheet of a billing profile, and reads the file.
func (r *Reader) ofProfile(ctx context.Context, a agreement, sheet *pricesheet.Sheet, now time.Time) error {
	poller, err := r.downloads.BeginDownloadByBillingProfile(ctx, a.account, a.profile, nil)
	if err != nil {
		return r.refusedProfile(a, err)
	}
	r.say("Azure makes the price sheet of billing profile " + a.profile + ", which takes minutes")
	var last *http.Response
	made, err := poller.PollUntilDone(policy.WithCaptureResponse(ctx, &last), nil)
	if err != nil {
		return r.refusedProfile(a, err)
	}
	address, err := addressOf(made.DownloadURL.DownloadURL, last)
	if err != nil {
		return fmt.Errorf("the price sheet of billing profile %s: Azure has made it and does not say where it is: %w; run this again",
			a.profile, err)
	}
	text, err := r.file(ctx, address)
	if err == nil {
		err = sheet.Read(bytes.NewReader(text), now)
	}
	if err != nil {
		return fmt.Errorf("read the price sheet of billing profile %s: %w", a.profile, err)
	}
	return nil
}

// addressOf is where a file is. Later versions of the API, which the SDK does not ask for,
// put it into properties.
func addressOf(address *string, answer *http.Response) (string, error) {
	if address != nil && *address != "" {
		return *address, nil
	}
	text, err := runtime.Payload(answer)
	if err != nil {
		return "", err
	}
	var made struct {
		Properties armcostmanagement.DownloadURL `json:"properties"`
	}
	if err := json.Unmarshal(text, &made); err != nil {
		return "", err
	}
	if made.Properties.DownloadURL == nil {
		return "", errors.New("its answer has no downloadUrl")
	}
	return *made.Properties.DownloadURL, nil
}

// file fetches a file. Its address is a secret, and stands in no error.
func (r *Reader) file(ctx context.Context, address string) ([]byte, error) {
	request, err := runtime.NewRequest(ctx, http.MethodGet, address)
	if err != nil {
		return nil, errors.New("the address that Azure gives for it is none")
	}
	answer, err := r.files.Do(request)
	var failed *url.Error
	switch {
	case errors.As(err, &failed):
		return nil, fmt.Errorf("fetch the file from %s: %w", request.Raw().URL.Host, failed.Err)
	case err != nil:
		return nil, fmt.Errorf("fetch the file from %s: %w", request.Raw().URL.Host, err)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("fetch the file: %s answers %s; run this again", request.Raw().URL.Host, answer.Status)
	}
	return runtime.Payload(answer)
}
