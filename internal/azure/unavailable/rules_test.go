package unavailable

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

// A refusal of which nothing is known rests a size in its zone after three in a row without
// a machine between them. Refusals that say something count for nothing there.
func TestRepeatedRefusalRestsTheSizeInItsZone(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	b := New(c.now)
	d4, d8 := size("Standard_D4s_v5", 4), size("Standard_D8s_v5", 8)
	unknown := NewFailure("Weird", "something", nil)
	here := Attempt{d4, "eastus-1", model.Spot}
	b.MarkUnavailable(unknown, here)
	b.MarkUnavailable(unknown, here)
	b.MarkLaunched(here) // the count begins again
	b.MarkUnavailable(unknown, here)
	b.MarkUnavailable(unknown, here)
	// Neither of these is the same offering.
	b.MarkUnavailable(unknown, Attempt{d8, "eastus-1", model.Spot})
	b.MarkUnavailable(unknown, Attempt{d4, "eastus-2", model.Spot})
	b.MarkUnavailable(unknown, Attempt{d4, "eastus-1", model.OnDemand})
	b.MarkLaunched(Attempt{d8, "eastus-1", model.Spot})
	b.MarkLaunched(Attempt{d4, "eastus-2", model.Spot})
	b.MarkLaunched(Attempt{d4, "eastus-1", model.OnDemand})
	if n := len(b.Entries()); n != 0 {
		t.Fatalf("%d entries after two refusals in a row", n)
	}
	b.MarkUnavailable(unknown, here)
	if why := whyNot(b, d4, "eastus-1", model.Spot); !strings.Contains(why, "Weird 3 times in a row") {
		t.Errorf("after the third: %q", why)
	}
	if n := len(b.Entries()); n != 1 {
		t.Errorf("%d entries, want that of the size in its zone alone", n)
	}
	c.at = c.at.Add(RestTTL)
	b.MarkUnavailable(unknown, here)
	b.MarkUnavailable(unknown, here)
	if why := whyNot(b, d4, "eastus-1", model.Spot); why != "" {
		t.Errorf("after its rest and two more: %q", why)
	}
}

func TestRefusalsThatSaySomethingAreNotCounted(t *testing.T) {
	for _, f := range []*Failure{
		NewFailure("TooManyRequests", "slow down", nil),
		NewFailure("SubnetIsFull", "no address", nil),
		NewFailure("OperationNotAllowed", "Operation is not allowed: Another operation (Upgrading) is in progress", nil),
		NewFailure("QuotaExceeded", "exceeding approved Total Regional Cores quota", nil),
	} {
		b := New((&clock{time.Unix(0, 0)}).now)
		for range 2 * Repeats {
			b.MarkUnavailable(f, Attempt{size("Standard_D4s_v5", 4), "eastus-1", model.OnDemand})
		}
		if entries := b.Entries(); len(entries) != 0 {
			t.Errorf("%s: %+v", f.Kind, entries)
		}
	}
}

// What a launch does next depends on these answers.
func TestFailureSaysWhatMayFollow(t *testing.T) {
	regional := model.Offering{Quotas: []model.QuotaUse{{Quota: instancetype.QuotaRegional}}}
	for _, c := range []struct {
		code, message             string
		capacity, again, rulesOut bool
		quota, said               string
	}{
		{"SkuNotAvailable", "sold out", true, false, false, "", "SkuNotAvailable: sold out"},
		{"RetryableError", "later", true, true, false, "", "RetryableError: later"},
		{"QuotaExceeded", "exceeding approved Total Regional Cores quota", true, false, true, instancetype.QuotaRegional,
			"QuotaExceeded: exceeding approved Total Regional Cores quota"},
		{"SubnetIsFull", "no address", false, false, false, "", "SubnetIsFull: no address"},
		{"OSProvisioningClientError", "agent", false, false, false, "",
			"OSProvisioningClientError: agent (the image's own agent gave up: look at the boot diagnostics of the machine and at the image)"},
		{"Weird", "something", false, false, false, "", "Weird: something"},
	} {
		f := NewFailure(c.code, c.message, io.ErrUnexpectedEOF)
		if f.Capacity() != c.capacity || f.AskAgain() != c.again || f.RulesOut(&regional) != c.rulesOut || f.Quota() != c.quota {
			t.Errorf("%s: capacity %v, again %v, rules out %v, quota %q", c.code, f.Capacity(), f.AskAgain(), f.RulesOut(&regional), f.Quota())
		}
		if f.RulesOut(&model.Offering{Quotas: []model.QuotaUse{{Quota: "other"}, {}}}) {
			t.Errorf("%s rules out an offering that draws on another quota", c.code)
		}
		if f.Error() != c.said {
			t.Errorf("%s says %q, want %q", c.code, f, c.said)
		}
		if !errors.Is(f, io.ErrUnexpectedEOF) {
			t.Errorf("%s does not wrap what it was read from", c.code)
		}
	}
}

// answered is an answer of Azure as the SDK returns it.
func answered(status int, body string) error {
	return runtime.NewResponseError(&http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: http.Header{"X-Ms-Error-Code": {"Header"}},
		Request: &http.Request{Method: http.MethodPut, URL: &url.URL{Scheme: "https", Host: "arm.test"}},
		Body:    io.NopCloser(strings.NewReader(body)),
	})
}

func TestClassifyReadsEveryFormOfAnswer(t *testing.T) {
	known := NewFailure("SkuNotAvailable", "sold out", nil)
	if f := Classify(fmt.Errorf("machine a: %w", known)); f != known {
		t.Errorf("a failure that is known already is read as %+v", f)
	}
	for name, c := range map[string]struct {
		err           error
		kind          Kind
		code, message string
	}{
		"throttled in words of quota": {answered(http.StatusTooManyRequests, `{"error": {"code": "OperationNotAllowed", "message": "LowPriorityCores"}}`),
			Throttled, "OperationNotAllowed", "LowPriorityCores"},
		"AKS without a frame":      {answered(http.StatusBadRequest, `{"code": "SkuNotAvailable", "message": "sold out"}`), SKUNotAvailable, "SkuNotAvailable", "sold out"},
		"details without a text":   {answered(http.StatusBadRequest, `{"error": {"details": [{"code": "SkuNotAvailable", "message": "sold out"}]}}`), SKUNotAvailable, "SkuNotAvailable", "sold out"},
		"a frame around nothing":   {answered(http.StatusBadRequest, `{"error": {}, "code": "SkuNotAvailable", "message": "sold out"}`), SKUNotAvailable, "SkuNotAvailable", "sold out"},
		"an answer without a body": {&azcore.ResponseError{ErrorCode: "SkuNotAvailable", StatusCode: http.StatusConflict}, SKUNotAvailable, "SkuNotAvailable", ""},
		"known by its target": {answered(http.StatusBadRequest,
			`{"error": {"code": "InvalidParameter", "message": "no", "target": "securityProfile.encryptionAtHost"}}`), HostEncryptionOff,
			"InvalidParameter", "no Target: securityProfile.encryptionAtHost"},
		"known without its target": {answered(http.StatusConflict, `{"error": {"code": "SkuNotAvailable", "message": "sold out", "target": "vm"}}`),
			SKUNotAvailable, "SkuNotAvailable", "sold out"},
		"a target that says nothing": {answered(http.StatusConflict, `{"error": {"code": "Weird", "message": "w", "target": "vm"}}`), Other, "Weird", "w"},
		"the first detail that is known": {answered(http.StatusConflict, `{"error": {"code": "A", "message": "a", "details": [`+
			`{"code": "B", "message": "b"}, {"code": "SkuNotAvailable", "message": "c"}, {"code": "SubnetIsFull", "message": "d"}]}}`),
			SKUNotAvailable, "SkuNotAvailable", "c"},
	} {
		f := Classify(c.err)
		if f == nil || f.Kind != c.kind || f.Code != c.code || c.message != "" && f.Message != c.message {
			t.Errorf("%s: read as %+v", name, f)
			continue
		}
		if f.Reason() != rowOf(c.kind).Reason {
			t.Errorf("%s: the reason is %s", name, f.Reason())
		}
	}
}

// What is no answer of Azure's form is read by the SDK's words for it.
func TestAnswersOfOtherFormsKeepTheirText(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		text string
	}{
		"a text that is cut":    {answered(http.StatusConflict, `"message": "cut`), "cut"},
		"JSON of another form":  {answered(http.StatusConflict, `{"answer": 42}`), "RESPONSE 409"},
		"a response without it": {&azcore.ResponseError{ErrorCode: "Header", RawResponse: &http.Response{Status: "409 Conflict", Request: &http.Request{URL: &url.URL{}}}}, "409 Conflict"},
	} {
		if f := Classify(c.err); f == nil || f.Kind != Other || f.Code != "Header" || !strings.Contains(f.Message, c.text) {
			t.Errorf("%s: read as %+v", name, f)
		}
	}
}

// Where and for how long something is not asked for.
func TestRefusalCountsWhereAndAsLongAsItSays(t *testing.T) {
	sold := NewFailure("SkuNotAvailable", "sold out", nil)
	usedUp := NewFailure("OperationNotAllowed", "exceeding approved standardDSv5Family Cores quota. Current Limit: 20", nil)
	otherNone := NewFailure("OperationNotAllowed", "Submit a request for Quota increase. Current Limit: 0", nil)
	d16, alike := size("Standard_D16s_v5", 16), size("Standard_D16ds_v5", 16)
	for name, c := range map[string]struct {
		failure *Failure
		attempt Attempt
		asked   *instancetype.SKU
		zone    string
		after   time.Duration
		refused bool
	}{
		"sold out in a zone, another zone":       {sold, Attempt{d16, "eastus-1", model.OnDemand}, d16, "eastus-2", 0, true},
		"sold out in a zone, without one":        {sold, Attempt{d16, "eastus-1", model.OnDemand}, d16, "0", 0, false},
		"sold out without a zone":                {sold, Attempt{d16, "0", model.OnDemand}, d16, "0", 0, true},
		"sold out without a zone, in a zone":     {sold, Attempt{d16, "0", model.OnDemand}, d16, "eastus-1", 0, false},
		"sold out on demand, hours later":        {sold, Attempt{d16, "eastus-1", model.OnDemand}, d16, "eastus-1", 2 * time.Hour, true},
		"quota of the family, a size as large":   {usedUp, Attempt{d16, "eastus-1", model.OnDemand}, alike, "eastus-1", 0, true},
		"quota of the family, minutes later":     {usedUp, Attempt{d16, "eastus-1", model.OnDemand}, d16, "eastus-1", lowQuotaTTL, false},
		"quota of another kind that is zero":     {otherNone, Attempt{d16, "eastus-1", model.OnDemand}, d16, "eastus-1", lowQuotaTTL - time.Second, true},
		"quota of another kind, minutes later":   {otherNone, Attempt{d16, "eastus-1", model.OnDemand}, d16, "eastus-1", lowQuotaTTL, false},
		"quota of the family, before its end":    {usedUp, Attempt{d16, "eastus-1", model.OnDemand}, d16, "eastus-2", lowQuotaTTL - time.Second, true},
		"quota of the family, other sizes of it": {usedUp, Attempt{d16, "eastus-1", model.OnDemand}, size("Standard_D8s_v5", 8), "eastus-1", 0, false},
	} {
		now := &clock{time.Unix(0, 0)}
		b := New(now.now)
		b.MarkUnavailable(c.failure, c.attempt)
		now.at = now.at.Add(c.after)
		if why := whyNot(b, c.asked, c.zone, model.OnDemand); (why != "") != c.refused {
			t.Errorf("%s: %q", name, why)
		}
	}
}

func TestInterruptionOfUnknownMachineRulesNothingOut(t *testing.T) {
	b := New((&clock{time.Unix(0, 0)}).now)
	b.MarkInterrupted("", "eastus-1")
	b.MarkInterrupted("Standard_D4s_v5", "")
	if entries := b.Entries(); len(entries) != 0 {
		t.Errorf("%+v", entries)
	}
	b.MarkInterrupted("Standard_D4s_v5", "eastus-1")
	if why := whyNot(b, size("Standard_D4s_v5", 4), "eastus-1", model.Spot); !strings.Contains(why, "an eviction of such a machine") {
		t.Errorf("got %q", why)
	}
	if why := whyNot(b, size("Standard_D8s_v5", 8), "eastus-1", model.Spot); why != "" {
		t.Errorf("another size: %q", why)
	}
}

// An entry that grows to smaller sizes changes answers.
func TestWiderRefusalMovesTheRevision(t *testing.T) {
	b := New((&clock{time.Unix(0, 0)}).now)
	usedUp := NewFailure("OperationNotAllowed", "exceeding approved standardDSv5Family Cores quota. Current Limit: 20", nil)
	small, large := size("Standard_D4s_v5", 4), size("Standard_D16s_v5", 16)
	b.MarkUnavailable(usedUp, Attempt{large, "eastus-1", model.OnDemand})
	b.MarkInterrupted("Standard_D4s_v5", "eastus-1")
	b.put(subject{size: small.Name, place: anyPlace, capacityType: model.OnDemand}, 0, time.Minute, cause{why: "x"})
	r := b.Revision()
	b.put(subject{family: small.Family, place: anyPlace, capacityType: model.OnDemand}, 4, time.Minute, cause{why: "x"})
	if b.Revision() == r {
		t.Error("smaller sizes of the family are refused now, and the revision is the same")
	}
}

// Entries end in the order of their ends, whichever was added first.
func TestEntriesEndInTime(t *testing.T) {
	for range 20 { // maps are walked in another order each time
		c := &clock{time.Unix(0, 0)}
		b := New(c.now)
		for i := range 6 {
			b.put(subject{size: fmt.Sprint(i), place: anyPlace, capacityType: model.Spot}, 0, time.Duration(i+1)*time.Minute, cause{why: "x"})
		}
		for left := 5; left >= 0; left-- {
			c.at = c.at.Add(time.Minute)
			if n := len(b.Entries()); n != left {
				t.Fatalf("%s later there are %d entries, want %d", c.at.Sub(time.Unix(0, 0)), n, left)
			}
		}
		b.put(subject{size: "a", place: anyPlace, capacityType: model.Spot}, 0, time.Minute, cause{why: "x"})
		c.at = c.at.Add(time.Minute)
		if n := b.Forget("a"); n != 0 {
			t.Fatalf("%d entries were forgotten that had ended", n)
		}
	}
}
