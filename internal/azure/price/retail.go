package price

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/model"
)

// DefaultEndpoint is where Azure publishes retail prices. It needs no
// credential.
const DefaultEndpoint = "https://prices.azure.com/api/retail/prices"

const (
	apiVersion  = "2023-01-01-preview"
	maxAttempts = 5
	firstPause  = time.Second
	// maxPause keeps a strange Retry-After from stopping refreshes for hours.
	maxPause = 2 * time.Minute
	// tryTimeout ends a request that hangs.
	tryTimeout = 30 * time.Second
	// maxPages ends a chain of pages that never ends; a region has about 60.
	maxPages = 1000
)

// Doer sends HTTP requests.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Client reads the retail price API.
type Client struct {
	endpoint string
	http     Doer
	now      func() time.Time
}

// NewClient returns a client for the endpoint, empty for Azure's own.
func NewClient(endpoint string, doer Doer, now func() time.Time) *Client {
	return &Client{cmp.Or(endpoint, DefaultEndpoint), doer, now}
}

// meter is one line of the price list.
type meter struct {
	Size          string    `json:"armSkuName"`
	SKUName       string    `json:"skuName"`
	MeterName     string    `json:"meterName"`
	MeterID       string    `json:"meterId"`
	ProductName   string    `json:"productName"`
	Price         float64   `json:"retailPrice"`
	Unit          string    `json:"unitOfMeasure"`
	EffectiveFrom time.Time `json:"effectiveStartDate"`
	Primary       bool      `json:"isPrimaryMeterRegion"`
}

type page struct {
	Items []meter `json:"Items"`
	Next  string  `json:"NextPageLink"`
}

// Fetch reads all prices of a region. An answer without any price is an error.
func (c *Client) Fetch(ctx context.Context, region string) (Table, error) {
	onDemand, spot, err := c.read(ctx, region)
	return Table{OnDemand: money(onDemand), Spot: money(spot)}, err
}

// Meter is what Azure bills a machine by: one for each size, region and capacity type.
type Meter struct {
	ID, Size     string
	CapacityType model.CapacityType
}

// Meters reads by which meters the machines of a region are billed, sorted by size: the
// same lines of the list whose prices [Client.Fetch] gives. None is an error.
func (c *Client) Meters(ctx context.Context, region string) ([]Meter, error) {
	onDemand, spot, err := c.read(ctx, region)
	if err != nil {
		return nil, err
	}
	var out []Meter
	for capacityType, meters := range map[model.CapacityType]map[string]meter{model.OnDemand: onDemand, model.Spot: spot} {
		for size, m := range meters {
			out = append(out, Meter{m.MeterID, size, capacityType})
		}
	}
	slices.SortFunc(out, func(a, b Meter) int {
		return cmp.Or(strings.Compare(a.Size, b.Size), strings.Compare(string(a.CapacityType), string(b.CapacityType)))
	})
	return out, nil
}

// read reads the meters that count, by size.
func (c *Client) read(ctx context.Context, region string) (onDemand, spot map[string]meter, err error) {
	next := c.address(region)
	onDemand, spot = map[string]meter{}, map[string]meter{}
	seen := map[string]bool{}
	for next != "" {
		if seen[next] || len(seen) == maxPages {
			return nil, nil, fmt.Errorf("read retail prices of region %s: the pages do not end: after %d of them the next is "+
				"%s; the prices before stay", region, len(seen), next)
		}
		seen[next] = true
		p, err := c.page(ctx, next)
		if err != nil {
			return nil, nil, fmt.Errorf("read retail prices of region %s: %w", region, err)
		}
		for _, m := range p.Items {
			c.file(m, onDemand, spot)
		}
		next = p.Next
	}
	if len(onDemand) == 0 {
		return nil, nil, fmt.Errorf("read retail prices of region %s: %s lists none; check the region's name", region, c.endpoint)
	}
	return onDemand, spot, nil
}

// FirstPage is how many prices the first page of a region has: whether the API answers.
func (c *Client) FirstPage(ctx context.Context, region string) (int, error) {
	p, _, err := c.try(ctx, c.address(region))
	if err != nil {
		return 0, fmt.Errorf("read retail prices of region %s: %w", region, err)
	}
	return len(p.Items), nil
}

// address is that of the first page of a region.
func (c *Client) address(region string) string {
	filter := fmt.Sprintf("priceType eq 'Consumption' and currencyCode eq 'USD' and serviceFamily eq 'Compute' "+
		"and serviceName eq 'Virtual Machines' and armRegionName eq '%s'", strings.ReplaceAll(region, "'", "''"))
	return c.endpoint + "?" + url.Values{"api-version": {apiVersion}, "$filter": {filter}}.Encode()
}

// file keeps a meter if it is the one that counts for its size.
func (c *Client) file(m meter, onDemand, spot map[string]meter) {
	switch {
	case m.Size == "" || m.Price <= 0,
		m.Unit != "" && m.Unit != "1 Hour",
		strings.HasSuffix(m.ProductName, " Windows"),
		strings.Contains(m.ProductName, "CloudServices"), strings.Contains(m.ProductName, "Cloud Services"),
		strings.HasSuffix(m.MeterName, " Low Priority"), strings.HasSuffix(m.SKUName, " Low Priority"):
		return
	}
	into := onDemand
	if strings.HasSuffix(m.SKUName, " Spot") {
		into = spot
	}
	if old, ok := into[m.Size]; !ok || c.better(m, old) {
		into[m.Size] = m
	}
}

// better decides between two meters of one size, so that the same list gives
// the same price in whatever order it comes: a meter in force, then the region's
// primary one, then the one in force most recently, the cheaper, the smaller id.
func (c *Client) better(a, b meter) bool {
	if future := a.EffectiveFrom.After(c.now()); future != b.EffectiveFrom.After(c.now()) {
		return !future
	}
	if a.Primary != b.Primary {
		return a.Primary
	}
	return cmp.Or(b.EffectiveFrom.Compare(a.EffectiveFrom), cmp.Compare(a.Price, b.Price), cmp.Compare(a.MeterID, b.MeterID)) < 0
}

func money(meters map[string]meter) map[string]model.Money {
	out := make(map[string]model.Money, len(meters))
	for size, m := range meters {
		out[size] = model.USD(m.Price)
	}
	return out
}

// page reads one page, trying again while Azure asks for patience.
func (c *Client) page(ctx context.Context, address string) (page, error) {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		p, retryAfter, err := c.try(ctx, address)
		if err == nil || ctx.Err() != nil || attempt == maxAttempts || errors.Is(err, errPermanent) {
			return p, err
		}
		wait := pause
		if retryAfter > 0 {
			wait = min(retryAfter, maxPause)
		}
		pause *= 2
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return page{}, ctx.Err()
		case <-timer.C:
		}
	}
}

var errPermanent = errors.New("asking again would not help")

// try asks once.
func (c *Client) try(ctx context.Context, address string) (p page, retryAfter time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return p, 0, fmt.Errorf("%w: %w", errPermanent, err)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return p, 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil {
			retryAfter = time.Duration(seconds) * time.Second
		}
		err := fmt.Errorf("%s answered %s", request.URL.Host, answer.Status)
		if answer.StatusCode < 500 && answer.StatusCode != http.StatusTooManyRequests && answer.StatusCode != http.StatusRequestTimeout {
			err = fmt.Errorf("%w: %w", errPermanent, err)
		}
		return p, retryAfter, err
	}
	const maxBody = 64 << 20
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxBody)).Decode(&p); err != nil {
		return p, 0, fmt.Errorf("decode the answer of %s: %w", request.URL.Host, err)
	}
	return p, 0, nil
}
