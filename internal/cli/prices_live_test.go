package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nodeautoprovision/nap/internal/armsim"
	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/price"
	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/pages"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// billedAzure is a simulated Azure whose subscription has agreed something with it, beside an
// empty folder in which nap runs.
type billedAzure struct {
	*armtest.Env
	t *testing.T
	// http is in the place of the way to Azure, where a test needs another.
	http http.RoundTripper
}

// billed makes one with a tenth off all prices and reservations in two regions.
func billed(t *testing.T, agreement string, changes ...func(*armsim.Config)) *billedAzure {
	t.Helper()
	t.Chdir(t.TempDir())
	env := armtest.New(t, append([]func(*armsim.Config){func(c *armsim.Config) {
		c.SubscriptionID = testSubscription
		c.Billing = armsim.Billing{Agreement: agreement, Discount: 10, Reservations: []armsim.Reservation{
			{Name: "web", Size: "Standard_D4s_v5", Region: "eastus", Quantity: 3},
			{Name: "batch", Size: "Standard_D4s_v5", Region: "eastus", Quantity: 2, Scopes: []string{"/subscriptions/" + testSubscription}},
			{Name: "others", Size: "Standard_D4s_v5", Region: "eastus", Quantity: 7, Scopes: []string{"/subscriptions/another"}},
			{Name: "west", Size: "Standard_D8s_v5", Region: "westus", Quantity: 9},
		}}
	}}, changes...)...)
	return &billedAzure{Env: env, t: t, http: env.HTTP.Transport}
}

// few leaves two sizes.
func few(c *armsim.Config) { c.Sizes = []string{"Standard_D2s_v5", "Standard_D4s_v5"} }

// run runs nap prices import for eastus.
func (b *billedAzure) run(args ...string) (out, errs string, code int) {
	b.t.Helper()
	client := &http.Client{Transport: b.http}
	options := b.ClientOptions()
	options.Transport, options.Retry.MaxRetries = client, 3
	var o, e bytes.Buffer
	streams := command.Streams{In: strings.NewReader(""), Out: &o, Err: &e}
	c := &importCommand{
		priceList: priceList{streams: streams, http: client},
		lookupEnv: func(string) (string, bool) { return "", false },
		connect: func(cfg *config.Config) (azureAccess, error) {
			if cfg.SubscriptionID != testSubscription || cfg.Cloud.Name != config.CloudPublic {
				b.t.Errorf("connects to %q in %q", cfg.SubscriptionID, cfg.Cloud.Name)
			}
			return azureAccess{b.Credential, options, client}, nil
		},
	}
	code = command.Run(b.t.Context(), c.command(), append([]string{"--region", "eastus", "--endpoint", armtest.Endpoint + "/api/retail/prices"}, args...), streams)
	return o.String(), e.String(), code
}

// live runs it with what Azure tells of the subscription.
func (b *billedAzure) live(args ...string) (out, errs string, code int) {
	b.t.Helper()
	return b.run(append([]string{"--subscription", testSubscription}, args...)...)
}

// save writes what a GET of Azure answers to a file, and returns the link to the next page.
func (b *billedAzure) save(file, address string) (next string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	token, _ := b.Server.Token("")
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := b.HTTP.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	var page struct{ Properties struct{ NextLink string } }
	if err = errors.Join(err, json.Unmarshal(text, &page)); err != nil || answer.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %v", answer.Status, err)
	}
	return page.Properties.NextLink
}

// body is a file of prices without its first line, which has the time.
func body(text string) string { return text[strings.IndexByte(text, '\n')+1:] }

// The file is the same, whether the rows come from Azure or from what az has printed of them.
func TestLiveImportEqualsImportOfTheSameRows(t *testing.T) {
	b := billed(t, armsim.EnterpriseAgreement)
	live, errs, code := b.live()
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	at := armtest.Endpoint + "/subscriptions/" + testSubscription + "/providers/Microsoft.Consumption/pricesheets/default?api-version=2021-10-01"
	var args []string
	for n := 0; at != ""; n++ {
		name := fmt.Sprintf("sheet-%d.json", n)
		at = b.save(name, at)
		args = append(args, "--price-sheet", name)
	}
	if len(args) < 6 {
		t.Errorf("the sheet has %d pages, want several", len(args)/2)
	}
	b.save("reservations.json", armtest.Endpoint+"/providers/Microsoft.Capacity/reservations?api-version=2022-03-01")
	args = append(args, "--reservations", "reservations.json")
	// With both files nothing is asked of the subscription but what is for it.
	files, errs, code := b.live(args...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if d := cmp.Diff(body(files), body(live)); d != "" {
		t.Error(d)
	}
}

// What was agreed reaches plans, and the controller's book of prices.
func TestPlanUsesWhatWasImportedLive(t *testing.T) {
	for _, agreement := range []string{armsim.EnterpriseAgreement, armsim.CustomerAgreement} {
		t.Run(agreement, func(t *testing.T) { planUsesImport(t, agreement) })
	}
}

func planUsesImport(t *testing.T, agreement string) {
	web, err := filepath.Abs("../../docs/examples/web.yaml")
	if err != nil {
		t.Fatal(err)
	}
	b := billed(t, agreement)
	out, errs, code := b.live("-o", "prices.yaml")
	made := strings.Contains(errs, "Azure makes the price sheet of billing profile 2USN-TPCD-BG7-TGB, which takes minutes\n")
	if code != 0 || out != "" || !strings.Contains(errs, "wrote prices.yaml\n") || made != (agreement == armsim.CustomerAgreement) ||
		!strings.Contains(errs, "5 reserved machines of 1 sizes in eastus\n") || !strings.Contains(errs, "; 0 stay at the retail price\n") {
		t.Fatalf("exit code %d, %q: %s", code, out, errs)
	}
	plan := func(more ...string) (cost float64) {
		t.Helper()
		var told, talk bytes.Buffer
		args := append([]string{"plan", "-f", web, "--region", "eastus", "--budget", "0", "-o", "json"}, more...)
		if code := Main(t.Context(), args, "test", command.Streams{In: strings.NewReader(""), Out: &told, Err: &talk}); code == 1 {
			t.Fatal(talk.String())
		}
		var report planReport
		if err := json.Unmarshal(told.Bytes(), &report); err != nil || report.Summary.HourlyCost == 0 {
			t.Fatalf("%v: %s", err, told.String())
		}
		return report.Summary.HourlyCost
	}
	if retail, agreed := plan(), plan("--prices-file", "prices.yaml"); agreed >= retail {
		t.Errorf("the plan costs $%v with a tenth off, and $%v without", agreed, retail)
	}
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	book := price.NewBook(table, "eastus")
	if _, err := price.OpenFile("prices.yaml", book); err != nil {
		t.Fatal(err)
	}
	if got, _ := book.Price("Standard_D4s_v5", model.OnDemand); got != model.USD(0.1728) {
		t.Errorf("a machine costs %v, want $0.1728, which is $0.192 less a tenth", got)
	}
	reserved, use, is := book.Covered("Standard_D4s_v5")
	if !is || reserved != 0 || !slices.ContainsFunc(book.Lines(), func(q model.Quota) bool { return q.Name == use.Quota && q.Left == 5 }) {
		t.Errorf("a reserved machine costs %v of %v", reserved, book.Lines())
	}
}

// refused is a fault that answers requests of an action in one way.
func refused(action string, status int, code string) armsim.Fault {
	return armsim.Fault{Kind: armsim.FaultError, Operation: action, Status: status, Code: code}
}

const (
	readSheet        = "Microsoft.Consumption/pricesheets/read"
	downloadSheet    = "Microsoft.CostManagement/pricesheets/download/action"
	readReservations = "Microsoft.Capacity/reservations/read"
	readProperty     = "Microsoft.Billing/billingProperty/read"
)

// TestLiveImportSaysWhatAzureRefuses: a part that is refused is named with what to do, the
// other one is imported, and the exit code tells.
func TestLiveImportSaysWhatAzureRefuses(t *testing.T) {
	const sheet = "nap: the price sheet of subscription " + testSubscription + ": "
	for name, c := range map[string]struct {
		agreement string
		change    func(*armsim.Config)
		faults    []armsim.Fault
		code      int
		// says are parts of what it says; prices and reserved tell what is in the file.
		says             []string
		prices, reserved bool
	}{
		"no right to the sheet": {agreement: armsim.EnterpriseAgreement, faults: []armsim.Fault{refused(readSheet, 403, "AuthorizationFailed")},
			code: 2, reserved: true, says: []string{
				sheet + "Azure answers 403 AuthorizationFailed, the right " + readSheet + " is missing; have the role Billing Reader assigned",
				"AO view charges; or download it in the portal", "\nnap: imported all the same: 5 reserved machines of 1 sizes in eastus\n"}},
		"account owners may not see prices": {agreement: armsim.EnterpriseAgreement, faults: []armsim.Fault{refused(readSheet, 401, "401")},
			code: 2, reserved: true, says: []string{sheet + "Azure answers 401 Unauthorized, the right " + readSheet + " is missing"}},
		"no right to the billing profile": {agreement: armsim.CustomerAgreement, faults: []armsim.Fault{refused(downloadSheet, 403, "Forbidden")},
			code: 2, reserved: true, says: []string{
				"nap: the price sheet of billing profile 2USN-TPCD-BG7-TGB, which pays for subscription " + testSubscription +
					": Azure answers 403 Forbidden, a role of the billing profile is missing; have the role Billing profile reader assigned on it"}},
		"no right to reservations": {agreement: armsim.EnterpriseAgreement, faults: []armsim.Fault{refused(readReservations, 403, "AuthorizationFailed")},
			code: 2, prices: true, says: []string{
				"nap: the list of reservations: Azure answers 403 AuthorizationFailed, the right " + readReservations + " is missing; " +
					"have the role Reservations Reader assigned on /providers/Microsoft.Capacity; or ",
				"give that with --reservations FILE\nnap: imported all the same: ", " prices of virtual machines in eastus are in the price sheet of subscription "}},
		"no right to anything": {agreement: armsim.EnterpriseAgreement,
			faults: []armsim.Fault{refused("Microsoft.C*", 403, "AuthorizationFailed"), refused(readProperty, 403, "AuthorizationFailed")}, code: 1,
			says: []string{"nap: the list of reservations: Azure answers 403", sheet + "Azure answers 403"}},
		"no right to know the agreement": {agreement: armsim.EnterpriseAgreement, faults: []armsim.Fault{refused(readProperty, 403, "AuthorizationFailed")},
			prices: true, reserved: true},
		"paid for as you go": {agreement: armsim.PayAsYouGo, reserved: true, says: []string{
			"the price sheet of subscription " + testSubscription + ": it is paid for as you go and has none", "; retail prices hold\n"}},
		"sold by a partner": {agreement: armsim.PartnerAgreement, code: 2, reserved: true, says: []string{
			sheet + "a partner sells it and sets its prices", "; state what was agreed with the partner as prices or discounts by hand"}},
		"no sheet, and no word why": {agreement: armsim.PayAsYouGo, faults: []armsim.Fault{refused(readProperty, 404, "NotFound")}, code: 2, reserved: true,
			says: []string{sheet + "Azure answers 404 Not Found: Azure has none for this subscription; where it is paid for as you go, retail prices hold"}},
		"an offer that has no sheet": {agreement: armsim.EnterpriseAgreement, faults: []armsim.Fault{refused(readSheet, 400, "BadRequest")}, code: 2,
			reserved: true, says: []string{sheet + "Azure answers 400 BadRequest: Azure has none for this subscription"}},
		"other currency": {agreement: armsim.EnterpriseAgreement, change: func(c *armsim.Config) { c.Billing.Currency = "EUR" }, code: 2, reserved: true,
			says: []string{sheet + "it is in EUR, and nap plans in US dollars; state what was agreed as discounts by hand (docs/prices.md)"}},
		"other currency of a billing profile": {agreement: armsim.CustomerAgreement, change: func(c *armsim.Config) { c.Billing.Currency = "SEK" },
			code: 2, reserved: true, says: []string{sheet + "it is in SEK, "}},
		"no reservation is shown": {agreement: armsim.EnterpriseAgreement, change: func(c *armsim.Config) { c.Billing.Reservations = nil }, prices: true,
			says: []string{"Azure shows you no reservation at all: ", "Reservations Reader on /providers/Microsoft.Capacity\n", "0 reserved machines of 0 sizes"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := billed(t, c.agreement, few, func(cfg *armsim.Config) {
				if c.change != nil {
					c.change(cfg)
				}
			})
			for _, f := range c.faults {
				if _, err := b.Server.AddFault(f); err != nil {
					t.Fatal(err)
				}
			}
			out, errs, code := b.live()
			if code != c.code || (out == "") != (code == 1) {
				t.Errorf("exit code %d, want %d:\n%s\n%s", code, c.code, errs, out)
			}
			for _, want := range c.says {
				if !strings.Contains(errs, want) {
					t.Errorf("it does not say %q:\n%s", want, errs)
				}
			}
			if has := strings.Contains(out, "onDemand"); has != c.prices {
				t.Errorf("prices: %v\n%s", has, out)
			}
			if has := strings.Contains(out, "count: 5"); has != c.reserved {
				t.Errorf("reservations: %v\n%s", has, out)
			}
			if lacks := strings.Contains(out, "# It lacks the "); lacks != (code == 2) {
				t.Errorf("the file says that it lacks something: %v\n%s", lacks, out)
			}
		})
	}
}

// spoiled passes requests on, and answers those of which its function says so in its own way.
type spoiled struct {
	http.RoundTripper
	spoil func(*http.Request) bool
}

func (s spoiled) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.spoil(r) {
		return s.RoundTripper.RoundTrip(r)
	}
	return &http.Response{StatusCode: http.StatusInternalServerError, Status: "500 Internal Server Error", Request: r, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(`{"error":{"code":"InternalServerError","message":"no"}}`))}, nil
}

// Nothing is written where a page cannot be read: half a sheet would look like a whole one.
func TestPageThatFailsLeavesFileAsItWas(t *testing.T) {
	for name, c := range map[string]struct {
		agreement, path, query, want string
	}{
		"page of a sheet": {armsim.EnterpriseAgreement, "/pricesheets/default", "skiptoken=1000",
			"nap: read the price sheet of subscription " + testSubscription + ": Azure answers 500 InternalServerError; nothing is wrong here, run this again later\n"},
		"page of reservations": {armsim.EnterpriseAgreement, "/Microsoft.Capacity/reservations", "",
			"nap: read the list of reservations: Azure answers 500 InternalServerError; nothing is wrong here, run this again later\n"},
		"file of a sheet": {armsim.CustomerAgreement, "/pricesheets/", "sig=",
			"nap: read the price sheet of billing profile 2USN-TPCD-BG7-TGB: fetch the file: armsim.test answers 500 Internal Server Error; run this again\n"},
		"agreement": {armsim.EnterpriseAgreement, "/billingProperty/default", "",
			"nap: read how subscription " + testSubscription + " is billed: Azure answers 500 InternalServerError; nothing is wrong here, run this again later\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := billed(t, c.agreement)
				b.http = spoiled{b.http, func(r *http.Request) bool {
					return strings.Contains(r.URL.Path, c.path) && strings.Contains(r.URL.RawQuery, c.query)
				}}
				if err := os.WriteFile("prices.yaml", []byte("{}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				out, errs, code := b.live("-o", "prices.yaml")
				if code != 1 || out != "" || !strings.HasSuffix(errs, c.want) {
					t.Errorf("exit code %d, %q, %q, want %q", code, out, errs, c.want)
				}
				onlyFile(t, "prices.yaml", "{}\n")
			})
		})
	}
}

// Where Azure asks to wait for longer than it is tried, nothing is written either.
func TestLiveImportGivesUpWhereAzureThrottlesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := billed(t, armsim.EnterpriseAgreement, few)
		if _, err := b.Server.AddFault(armsim.Fault{Kind: armsim.FaultThrottle, Operation: readSheet}); err != nil {
			t.Fatal(err)
		}
		const want = "nap: read the price sheet of subscription " + testSubscription +
			": Azure answers 429 TooManyRequests; nothing is wrong here, run this again later\n"
		if out, errs, code := b.live(); code != 1 || out != "" || errs != want {
			t.Errorf("exit code %d, %q, %q, want %q", code, out, errs, want)
		}
	})
}

// onlyFile wants one file in the folder, with that text.
func onlyFile(t *testing.T, name, text string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil || len(files) != 1 || files[0].Name() != name {
		t.Errorf("files %v, %v", files, err)
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != text {
		t.Errorf("%s has become %q, %v", name, got, err)
	}
}

// A passing fault is waited out as long as Azure asks for, and the sheet is whole.
func TestLiveImportWaitsAsAzureAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := billed(t, armsim.CustomerAgreement, few, armtest.Realistic)
		want, _, code := b.live()
		if code != 0 {
			t.Fatalf("exit code %d", code)
		}
		for _, action := range []string{downloadSheet, readReservations, readProperty} {
			if _, err := b.Server.AddFault(armsim.Fault{
				Kind: armsim.FaultThrottle, Operation: action, RetryAfter: 40 * time.Second, Duration: 30 * time.Second,
			}); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		got, errs, code := b.live()
		if took := time.Since(start); code != 0 || body(got) != body(want) || took < 40*time.Second || took > 5*time.Minute {
			t.Errorf("exit code %d after %s: %s", code, took, errs)
		}
	})
}

// A file that lacks a part does not take the place of one that is there.
func TestPartDoesNotReplaceFile(t *testing.T) {
	b := billed(t, armsim.EnterpriseAgreement, few)
	if _, err := b.Server.AddFault(refused(readSheet, 403, "AuthorizationFailed")); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := b.live("-o", "new.yaml"); code != 2 || !strings.Contains(errs, "wrote new.yaml\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if err := os.Remove("new.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("prices.yaml", []byte("{}\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	_, errs, code := b.live("-o", "prices.yaml")
	if code != 1 || !strings.Contains(errs, "\nnap: prices.yaml stays as it was; what is left goes to standard output without -o: 5 reserved machines") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	onlyFile(t, "prices.yaml", "{}\n")
}

// A file is replaced as a whole and keeps its mode; one that is new is for its owner alone.
func TestImportReplacesFile(t *testing.T) {
	b := billed(t, armsim.EnterpriseAgreement, few)
	if err := os.WriteFile("list.json", []byte(importedReservations), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []os.FileMode{0o600, 0o644} {
		if out, errs, code := b.run("--reservations", "list.json", "-o", "prices.yaml"); code != 0 || out != "" {
			t.Fatalf("exit code %d, %q: %s", code, out, errs)
		}
		info, err := os.Stat("prices.yaml")
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%v, %v, want mode %v", info, err, want)
		}
		text, err := os.ReadFile("prices.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if terms, err := price.ParseTerms(text); err != nil || len(terms.Reservations) != 1 {
			t.Errorf("%v in\n%s", err, text)
		}
		if err := os.Chmod("prices.yaml", 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"folder": "nap: --output-file: folder is no file; leave the flag out", "none/prices.yaml": "nap: --output-file none/prices.yaml: ",
	} {
		if _, errs, code := b.run("--reservations", "list.json", "-o", file); code != 1 || !strings.Contains(errs, want) {
			t.Errorf("-o %s: exit code %d: %s", file, code, errs)
		}
	}
}

// A file takes the place of what Azure would be asked for: so goes on who lacks a right.
func TestFileTakesThePlaceOfWhatAzureRefuses(t *testing.T) {
	b := billed(t, armsim.EnterpriseAgreement, few)
	if _, err := b.Server.AddFault(refused(readReservations, 403, "AuthorizationFailed")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("list.json", []byte(importedReservations), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := b.live("--reservations", "list.json")
	if code != 0 || !strings.Contains(out, "count: 2") || !strings.Contains(out, "onDemand") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
}

// Long lists of reservations come in pages, and the file says when the first one ends.
func TestAllPagesOfReservationsCount(t *testing.T) {
	b := billed(t, armsim.PayAsYouGo, few, func(c *armsim.Config) {
		c.Billing.Reservations = nil
		for n := range 250 {
			c.Billing.Reservations = append(c.Billing.Reservations, armsim.Reservation{
				Name: fmt.Sprint("r", n), Size: "Standard_D4s_v5", Region: "eastus", Quantity: 1, Ends: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n),
			})
		}
	})
	out, errs, code := b.live()
	if code != 0 || !strings.Contains(out, "count: 250") || !strings.Contains(out, "# The first of the reservations ends on 2100-01-01: import again then.\n") {
		t.Errorf("exit code %d: %s\n%s", code, errs, out)
	}
}

// The imports that the page and the help show work as they stand there.
func TestDocumentedImportsRun(t *testing.T) {
	shown := newPricesImport(command.Streams{}).Example + "\n"
	for _, c := range pages.Of(t, "../..") {
		shown += " " + c.Text + "\n"
	}
	b := billed(t, armsim.EnterpriseAgreement, few)
	b.save("sheet.json", armtest.Endpoint+"/subscriptions/"+testSubscription+"/providers/Microsoft.Consumption/pricesheets/default?api-version=2021-10-01")
	b.save("reservations.json", armtest.Endpoint+"/providers/Microsoft.Capacity/reservations?api-version=2022-03-01")
	found := regexp.MustCompile(`(?m)^ +nap prices import ([^\n]*)`).FindAllStringSubmatch(shown, -1)
	for _, line := range found {
		args := strings.Fields(line[1])
		if i := slices.Index(args, "--subscription"); i >= 0 {
			args[i+1] = testSubscription
		}
		if i := slices.Index(args, ">"); i >= 0 {
			args = args[:i]
		}
		if out, errs, code := b.run(args...); code != 0 {
			t.Errorf("nap prices import %s: exit code %d: %s\n%s", line[1], code, errs, out)
		}
	}
	if len(found) != 4 {
		t.Errorf("%d imports are shown, want two on the page and two in the help", len(found))
	}
}
