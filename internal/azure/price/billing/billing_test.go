package billing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// answers play Azure: what comes to requests whose address has a text, by that text.
type answers map[string]string

func (a answers) Do(r *http.Request) (*http.Response, error) {
	status, text, header := http.StatusNotFound, "{}", http.Header{}
	for part, answer := range a {
		if strings.Contains(r.URL.String(), part) {
			status, text = http.StatusOK, answer
		}
	}
	if at, accepted := strings.CutPrefix(text, "Location: "); accepted {
		status, text = http.StatusAccepted, ""
		header.Set("Location", at)
	}
	if text == "forbidden" {
		status, text = http.StatusForbidden, `{"error":{"code":"AuthorizationFailed"}}`
	}
	if text == "broken" {
		return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: errors.New("connection reset")}
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: header, Request: r, Body: io.NopCloser(strings.NewReader(text))}, nil
}

type credential struct{}

func (credential) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "t", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// reader reads from answers.
func reader(t *testing.T, a answers) *Reader {
	t.Helper()
	r, err := New("sub", credential{}, &arm.ClientOptions{DisableRPRegistration: true,
		ClientOptions: policy.ClientOptions{Transport: a, Retry: policy.RetryOptions{MaxRetries: -1}}}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	customer = `{"properties":{"billingAccountAgreementType":"MicrosoftCustomerAgreement",
		"billingAccountId":"/providers/Microsoft.Billing/billingAccounts/acc","billingProfileId":"/providers/Microsoft.Billing/billingAccounts/acc/billingProfiles/pro"}}`
	oneLine = `"pricesheets":[{"meterId":"m-1","unitOfMeasure":"10 Hours","unitPrice":0.9,"currencyCode":"USD"}]`
	sheet   = "meterId,unitOfMeasure,unitPrice,currency\nm-1,1 Hour,0.09,USD\n"
)

// Pages must end, and what is read must be a sheet.
func TestSheetsThatAzureGivesWrong(t *testing.T) {
	const of, ofProfile = "read the price sheet of subscription sub: ", "read the price sheet of billing profile pro: "
	for want, a := range map[string]answers{
		of + "the page after 2: it is one that was read before: the pages do not end": {
			"pricesheets/default": `{"properties":{` + oneLine + `,"nextLink":"https://azure/next?$skiptoken=a"}}`},
		of + "the page after 1: the link to it has no $skiptoken: https://azure/next": {
			"pricesheets/default": `{"properties":{` + oneLine + `,"nextLink":"https://azure/next"}}`},
		of + `page 1: pricesheets[0]: unitPrice is "-1"; must be`: {
			"pricesheets/default": `{"properties":{` + strings.Replace(oneLine, "0.9", "-1", 1) + `}}`},
		"the price sheet of subscription sub: it is empty: Azure has none": {"pricesheets/default": `{"properties":{"pricesheets":[]}}`},
		"the price sheet of billing profile pro: Azure has made it and does not say where it is: its answer has no downloadUrl; run this again": {
			"billingProperty": customer, "/download": "Location: https://azure/made", "/made": "{}"},
		ofProfile + "it is no price sheet": {
			"billingProperty": customer, "/download": "Location: https://azure/made", "/made": `{"downloadUrl":"https://store/file?sig=secret"}`, "store": "a,b\n"},
		ofProfile + "fetch the file from store: connection reset": {
			"billingProperty": customer, "/download": "Location: https://azure/made", "/made": `{"downloadUrl":"https://store/file?sig=secret"}`, "store": "broken"},
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := reader(t, a).Sheet(t.Context(), time.Now())
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v, want %q and no secret", err, want)
			}
		})
	}
}

// The address of the file stands where the SDK looks for it, or where newer versions of the API
// put it.
func TestFileOfBillingProfileIsFound(t *testing.T) {
	for _, made := range []string{
		`{"downloadUrl":"https://store/file","expiryTime":"2026-11-24T12:00:00Z"}`,
		`{"status":"Completed","properties":{"downloadUrl":"https://store/file","validTill":"2026-11-24T12:00:00Z"}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			got, err := reader(t, answers{
				"billingProperty": customer, "billingAccounts/acc/billingProfiles/pro/": "Location: https://azure/made", "azure/made": made, "store": sheet,
			}).Sheet(t.Context(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if dollars, ok := got.Hourly("M-1"); !ok || dollars != 0.09 {
				t.Errorf("%s: $%v an hour, %v", made, dollars, ok)
			}
		})
	}
}

// Pages of reservations add up.
func TestReservationsOfAllPages(t *testing.T) {
	got, err := reader(t, answers{
		"reservations?": `{"value":[{"name":"a"}],"nextLink":"https://azure/page-2"}`, "page-2": `{"value":[{"name":"b"}]}`,
	}).Reservations(t.Context())
	if err != nil || string(got) != `[{"name":"a"},{"name":"b"}]` {
		t.Errorf("%s, %v", got, err)
	}
}

// A right is named as missing only where Azure says that one is.
func TestReservationsThatAzureDoesNotGive(t *testing.T) {
	for name, test := range map[string]struct {
		answers answers
		why     string
		right   bool
	}{
		"no right":      {answers{"reservations": "forbidden"}, "Azure answers 403 AuthorizationFailed", true},
		"no such thing": {answers{}, "Azure answers 404 Not Found", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := reader(t, test.answers).Reservations(t.Context())
			var refusal *Refusal
			if !errors.As(err, &refusal) || !strings.HasPrefix(refusal.Why, test.why) {
				t.Fatalf("got %v, want a refusal since %s", err, test.why)
			}
			if got := strings.Contains(err.Error(), "Reservations Reader"); got != test.right {
				t.Errorf("a right is named: %v, want %v: %v", got, test.right, err)
			}
			if !strings.Contains(refusal.Next, "--reservations FILE") {
				t.Errorf("there is no other way: %v", err)
			}
		})
	}
}
