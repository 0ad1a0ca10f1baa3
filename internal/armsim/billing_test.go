package armsim_test

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/billing/armbilling"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/consumption/armconsumption"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/costmanagement/armcostmanagement/v2"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/reservations/armreservations"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
)

// billedBy makes a subscription that is billed under an agreement.
func billedBy(t *testing.T, agreement string, options ...func(*armsim.Config)) *armtest.Env {
	t.Helper()
	return armtest.New(t, append(options, func(c *armsim.Config) {
		c.Billing = armsim.Billing{Agreement: agreement, Discount: 20, Reservations: []armsim.Reservation{
			{Name: "a", Size: "Standard_D4s_v5", Region: "eastus", Quantity: 2, Scopes: []string{"/subscriptions/1"}}}}
	})...)
}

func TestPriceSheetFileIsMadeWhileClientPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := billedBy(t, armsim.CustomerAgreement, armtest.Realistic)
		properties, err := armbilling.NewPropertyClient(env.SubscriptionID, env.Credential, env.ClientOptions())
		if err != nil {
			t.Fatal(err)
		}
		billing, err := properties.Get(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		account, profile := last(billing.Properties.BillingAccountID), last(billing.Properties.BillingProfileID)
		sheets, err := armcostmanagement.NewPriceSheetClient(env.Credential, env.ClientOptions())
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		poller, err := sheets.BeginDownloadByBillingProfile(t.Context(), account, profile, nil)
		if err != nil {
			t.Fatal(err)
		}
		made, err := poller.PollUntilDone(t.Context(), nil)
		if took := time.Since(start); err != nil || took < 10*time.Second || made.DownloadURL.DownloadURL == nil {
			t.Fatalf("after %s: %v", took, err)
		}
		address := *made.DownloadURL.DownloadURL
		archive, err := zip.NewReader(bytes.NewReader(get(t, env, address, http.StatusOK)), int64(len(get(t, env, address, http.StatusOK))))
		if err != nil || len(archive.File) < 2 {
			t.Errorf("%v, want an archive of several files", err)
		}
		unsigned, _, _ := strings.Cut(address, "&sig=")
		get(t, env, unsigned, http.StatusForbidden)
		_, err = sheets.BeginDownloadByBillingProfile(t.Context(), account, "another", nil)
		wantStatus(t, err, http.StatusNotFound)
	})
}

// get fetches a file as one does without signing in.
func get(t *testing.T, env *armtest.Env, address string, status int) []byte {
	t.Helper()
	answer, err := env.HTTP.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		t.Fatalf("%s, %v, want %d", answer.Status, err, status)
	}
	return text
}

func last(id *string) string { return (*id)[strings.LastIndexByte(*id, '/')+1:] }

func TestPriceSheetOfSubscriptionIsThatOfAnEnterpriseAgreement(t *testing.T) {
	for agreement, status := range map[string]int{
		armsim.EnterpriseAgreement: http.StatusOK, armsim.CustomerAgreement: http.StatusNotFound, "": http.StatusNotFound,
	} {
		env := billedBy(t, agreement)
		sheets, err := armconsumption.NewPriceSheetClient(env.SubscriptionID, env.Credential, env.ClientOptions())
		if err != nil {
			t.Fatal(err)
		}
		ten := int32(10)
		page, err := sheets.Get(t.Context(), &armconsumption.PriceSheetClientGetOptions{Top: &ten})
		if status != http.StatusOK {
			wantStatus(t, err, status)
			continue
		}
		if err != nil || len(page.Properties.Pricesheets) != 10 || page.Properties.NextLink == nil {
			t.Errorf("%v, want a page of ten lines and a link to the next", err)
		}
	}
}

func TestReservationsSayWhatTheyPayFor(t *testing.T) {
	env := billedBy(t, "")
	client, err := armreservations.NewReservationClient(env.Credential, env.ClientOptions())
	if err != nil {
		t.Fatal(err)
	}
	page, err := client.NewListAllPager(nil).NextPage(t.Context())
	if err != nil || len(page.Value) != 1 {
		t.Fatalf("%v, %d reservations", err, len(page.Value))
	}
	r := page.Value[0]
	if *r.SKU.Name != "Standard_D4s_v5" || *r.Properties.Quantity != 2 || *r.Properties.AppliedScopeType != armreservations.AppliedScopeTypeSingle ||
		*r.Properties.AppliedScopes[0] != "/subscriptions/1" || r.Properties.ExpiryDate.Year() != 2027 || *r.Properties.Term != armreservations.ReservationTermP1Y {
		t.Errorf("%+v", r.Properties)
	}
}
