package unavailable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/model"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func size(name string, vcpus int64) *instancetype.SKU {
	return &instancetype.SKU{Name: name, Family: "standardDSv5Family", VCPUs: vcpus}
}

func TestOfTwoEntriesTheWiderAndLongerHolds(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	b := New(c.now)
	small, large := size("Standard_D4s_v5", 4), size("Standard_D16s_v5", 16)
	usedUp := NewFailure("OperationNotAllowed", "exceeding approved standardDSv5Family Cores quota. Current Limit: 20", nil)
	none := NewFailure("OperationNotAllowed", "exceeding approved standardDSv5Family Cores quota. Current Limit: 0", nil)

	b.MarkUnavailable(usedUp, Attempt{large, "eastus-1", model.OnDemand})
	if whyNot(b, small, "eastus-1", model.OnDemand) != "" {
		t.Error("a smaller size is blocked by the quota that a larger one exceeds")
	}
	b.MarkUnavailable(none, Attempt{large, "eastus-1", model.OnDemand})
	b.MarkUnavailable(usedUp, Attempt{large, "eastus-1", model.OnDemand})
	c.at = c.at.Add(hourTTL - time.Second)
	if why := whyNot(b, small, "0", model.OnDemand); !strings.Contains(why, "1970-01-01T01:00:00Z") {
		t.Errorf("a family without any quota: %q, want blocked for an hour", why)
	}
	c.at = c.at.Add(time.Second)
	if why := whyNot(b, small, "0", model.OnDemand); why != "" {
		t.Errorf("after its hour: %q", why)
	}
}

func TestRevisionChangesWithAnswersAndTime(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	b := New(c.now)
	d4 := size("Standard_D4s_v5", 4)
	sold := NewFailure("SkuNotAvailable", "sold out", nil)
	r0 := b.Revision()
	b.MarkUnavailable(sold, Attempt{d4, "eastus-1", model.Spot})
	r1 := b.Revision()
	c.at = c.at.Add(time.Minute)
	b.MarkUnavailable(sold, Attempt{d4, "eastus-1", model.Spot})
	if r2 := b.Revision(); r1 == r0 || r2 != r1 {
		t.Errorf("revisions %d, %d, %d: want a move at the block and none at its extension", r0, r1, r2)
	}
	c.at = c.at.Add(hourTTL)
	if b.Revision() == r1 || len(b.Entries()) != 0 {
		t.Error("the end of a block does not move the revision")
	}
}

// TestForgottenSizeIsAskedForAgain: of a size, of its family, or of everything.
func TestForgottenSizeIsAskedForAgain(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	b := New(c.now)
	d4, e4 := size("Standard_D4s_v5", 4), &instancetype.SKU{Name: "Standard_E4s_v5", Family: "standardESv5Family", VCPUs: 4}
	none := NewFailure("OperationNotAllowed", "exceeding approved standardDSv5Family Cores quota. Current Limit: 0", nil)
	refused := func(s *instancetype.SKU) bool { return whyNot(b, s, "eastus-1", model.OnDemand) != "" }
	for _, s := range []*instancetype.SKU{d4, e4} {
		b.MarkUnavailable(none, Attempt{s, "eastus-1", model.OnDemand})
	}
	r := b.Revision()
	if n := b.Forget("standard_d4s_V5"); n == 0 || !refused(d4) {
		t.Errorf("%d entries forgotten; refused %v, want still refused for its family", n, refused(d4))
	}
	if n := b.Forget("standardDSv5Family"); n == 0 || refused(d4) || !refused(e4) {
		t.Errorf("%d entries forgotten; refused %v and %v, want only the other size", n, refused(d4), refused(e4))
	}
	if b.Revision() == r {
		t.Error("the revision says that no answer has changed")
	}
	if n := b.Forget(""); n != 0 || !refused(e4) {
		t.Errorf("%d entries forgotten without a name", n)
	}
	if b.Forget("*"); refused(e4) {
		t.Error("still refused after everything was forgotten")
	}
}

// whyNot is why an offering is not worth asking for, or "".
func whyNot(o *Offerings, s *instancetype.SKU, zone string, capacityType model.CapacityType) string {
	why, _ := o.Unavailable(s, zone, capacityType)
	return why
}

// TestQuotaThatIsUsedUpIsToldApart: from capacity, and whatever kind of quota Azure named.
func TestQuotaThatIsUsedUpIsToldApart(t *testing.T) {
	for _, c := range []struct {
		code, message string
		quota         bool
	}{
		{"OperationNotAllowed", "LowPriorityCores", true},
		{"OperationNotAllowed", "exceeding approved standardDSv5Family Cores quota. Current Limit: 8", true},
		{"QuotaExceeded", "Submit a request for Quota increase", true},
		{"ZonalAllocationFailed", "", false},
		{"SkuNotAvailable", "", false},
	} {
		b := New((&clock{time.Unix(0, 0)}).now)
		d4 := size("Standard_D4s_v5", 4)
		b.MarkUnavailable(NewFailure(c.code, c.message, nil), Attempt{d4, "eastus-1", model.Spot})
		if why, quota := b.Unavailable(d4, "eastus-1", model.Spot); why == "" || quota != c.quota {
			t.Errorf("%s %s: %q, quota %v, want %v", c.code, c.message, why, quota, c.quota)
		}
	}
}

func TestEntriesAreListedForPeople(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	b := New(c.now)
	b.MarkUnavailable(NewFailure("ZonalAllocationFailed", "", nil), Attempt{size("Standard_D4s_v5", 4), "eastus-1", model.Spot})
	var got []string
	for _, x := range b.Entries() {
		got = append(got, fmt.Sprintf("%s%s >=%d %s %s %s", x.Size, x.Family, x.MinVCPUs, x.Place, x.CapacityType, x.Until.Sub(c.at)))
	}
	want := "standardDSv5Family >=5 eastus-1 on-demand 3m0s; standardDSv5Family >=5 eastus-1 spot 3m0s; " +
		"Standard_D4s_v5 >=0 eastus-1 on-demand 1h0m0s; Standard_D4s_v5 >=0 eastus-1 spot 1h0m0s"
	if strings.Join(got, "; ") != want {
		t.Errorf("blocks %s\nwant %s", strings.Join(got, "; "), want)
	}
}

func TestClassifySDKErrors(t *testing.T) {
	answer := &http.Response{StatusCode: http.StatusConflict, Status: "409 Conflict", Header: http.Header{},
		Request: &http.Request{Method: http.MethodPut, URL: &url.URL{Scheme: "https", Host: "arm.test"}},
		Body: io.NopCloser(strings.NewReader(
			`{"error": {"code": "OperationNotAllowed", "message": "Exceeding \"approved\" standardDSv5Family Cores quota."}}`))}
	f := Classify(fmt.Errorf("create: %w", runtime.NewResponseError(answer)))
	if f == nil || f.Kind != FamilyQuota || f.Message != `Exceeding "approved" standardDSv5Family Cores quota.` ||
		f.Reason() != "SubscriptionQuotaReached" || !f.Capacity() {
		t.Errorf("read as %+v", f)
	}
	for name, c := range map[string]struct {
		body    string
		kind    Kind
		message string
	}{
		"its message after its details":    {`{"error": {"details": [{"code": "X", "message": "inner"}], "code": "ZonalAllocationFailed", "message": "No\n capacity."}}`, ZonalAllocation, "No capacity."},
		"compute's words in another's":     {`{"error": {"code": "Conflict", "message": "It failed.", "details": [{"code": "A", "message": "a"}, {"code": "OperationNotAllowed", "message": "LowPriorityCores"}]}}`, SpotQuota, "LowPriorityCores"},
		"words within words within others": {`{"error": {"code": "A", "message": "a", "details": [{"code": "B", "message": "b", "details": [{"code": "SkuNotAvailable", "message": "c"}]}]}}`, SKUNotAvailable, "c"},
		"what is about others of a batch":  {`{"error": {"code": "BatchMachineClientError", "message": "m", "details": [{"code": "SkuNotAvailable", "message": "c", "target": "other"}]}}`, Other, "m"},
		"other scripts":                    {`{"error": {"code": "RequestDisallowedByPolicy", "message": "\u00c9tiquette \"caf\u00e9\""}}`, Disallowed, `Étiquette "café"`},
		"no JSON":                          {`<html>Bad  Gateway</html>`, Other, "PUT https://arm.test -------------------------------------------------------------------------------- RESPONSE 409: 409 Conflict ERROR CODE: Header -------------------------------------------------------------------------------- <html>Bad Gateway</html> --------------------------------------------------------------------------------"},
	} {
		answer := &http.Response{StatusCode: http.StatusConflict, Status: "409 Conflict", Header: http.Header{"X-Ms-Error-Code": {"Header"}},
			Request: &http.Request{Method: http.MethodPut, URL: &url.URL{Scheme: "https", Host: "arm.test"}}, Body: io.NopCloser(strings.NewReader(c.body))}
		if f := Classify(runtime.NewResponseError(answer)); f == nil || f.Kind != c.kind || f.Message != c.message {
			t.Errorf("%s: read as %+v", name, f)
		}
	}
	for _, err := range []error{nil, context.Canceled, errors.New("connection reset")} {
		if f := Classify(err); f != nil {
			t.Errorf("%v was taken for an answer of Azure: %+v", err, f)
		}
	}
}

func TestInterruptedSizeUnavailableAsSpotForTenMinutes(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	b := New(c.now)
	b.MarkInterrupted("Standard_D4s_v5", "eastus-1")
	d4 := size("Standard_D4s_v5", 4)
	if whyNot(b, d4, "eastus-1", model.Spot) == "" {
		t.Error("it is bought again at once")
	}
	if whyNot(b, d4, "eastus-2", model.Spot) != "" || whyNot(b, d4, "eastus-1", model.OnDemand) != "" {
		t.Error("other zones, or on-demand, are blocked too")
	}
	c.at = c.at.Add(lowQuotaTTL)
	if why := whyNot(b, d4, "eastus-1", model.Spot); why != "" {
		t.Errorf("after ten minutes: %s", why)
	}
}

func TestTrap19AllocationFailureBlocksLargerSizesBriefly(t *testing.T) {
	c := &clock{time.Unix(0, 0)}
	b := New(c.now)
	failed, larger, smaller := size("Standard_D8s_v5", 8), size("Standard_D16s_v5", 16), size("Standard_D4s_v5", 4)
	b.MarkUnavailable(NewFailure("ZonalAllocationFailed", "no capacity", nil), Attempt{failed, "eastus-1", model.OnDemand})
	blocked := func(s *instancetype.SKU, zone string) bool { return whyNot(b, s, zone, model.OnDemand) != "" }
	if !blocked(failed, "eastus-1") || !blocked(larger, "eastus-1") || blocked(smaller, "eastus-1") || blocked(larger, "eastus-2") {
		t.Error("right after: want the size and larger ones blocked, in its zone alone")
	}
	c.at = c.at.Add(siblingTTL)
	if !blocked(failed, "eastus-1") || blocked(larger, "eastus-1") {
		t.Errorf("after %s: want the size itself blocked and nothing else", siblingTTL)
	}
	if siblingTTL > 5*time.Minute {
		t.Errorf("larger sizes stay blocked for %s", siblingTTL)
	}
}

func TestRefusalTellsTheUsageOfItsQuota(t *testing.T) {
	for message, want := range map[string][2]int64{
		"Operation could not be completed as it results in exceeding approved Total Regional Cores quota. Additional details - " +
			"Deployment Model: Resource Manager, Location: eastus, Current Limit: 20, Current Usage: 18, Additional Required: 4.": {20, 18},
		"exceeding approved Total Regional Cores quota. Current Limit: 20": {-1, -1},
	} {
		limit, used, told := NewFailure("OperationNotAllowed", message, nil).Usage()
		if told != (want[0] >= 0) || told && (limit != want[0] || used != want[1]) {
			t.Errorf("%q: limit %d, used %d, told %v", message, limit, used, told)
		}
	}
	if _, _, told := NewFailure("AllocationFailed", "Current Limit: 20, Current Usage: 18", nil).Usage(); told {
		t.Error("a refusal that is not about quota tells a usage")
	}
}
