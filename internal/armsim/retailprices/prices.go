package retailprices

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// Provider is the retail price API.
type Provider struct {
	sub        *arm.Subscription
	sizes      func() []skutable.Size // those that lists name
	set        map[string]float64     // what Set said, in USD per hour, by priceKey
	meterTable map[string][]priceItem // by region and API version; made when asked for
}

// New makes the provider of a subscription; sizes are those that lists name.
func New(sub *arm.Subscription, sizes func() []skutable.Size) *Provider {
	return &Provider{sub: sub, sizes: sizes, set: map[string]float64{}, meterTable: map[string][]priceItem{}}
}

// Endpoints are the rows of the provider.
func (p *Provider) Endpoints() []arm.Endpoint {
	return []arm.Endpoint{{Method: http.MethodGet, Path: "/api/retail/prices", Operation: "retail/prices", Handle: p.list}}
}

// pricePage is how many items the retail API puts on one page.
const pricePage = 1000

// priceItem is one meter as the retail API shows it.
type priceItem struct {
	CurrencyCode         string        `json:"currencyCode"`
	TierMinimumUnits     float64       `json:"tierMinimumUnits"`
	RetailPrice          float64       `json:"retailPrice"`
	UnitPrice            float64       `json:"unitPrice"`
	ArmRegionName        string        `json:"armRegionName"`
	Location             string        `json:"location"`
	EffectiveStartDate   string        `json:"effectiveStartDate"`
	MeterID              string        `json:"meterId"`
	MeterName            string        `json:"meterName"`
	ProductID            string        `json:"productId"`
	SKUID                string        `json:"skuId"`
	ProductName          string        `json:"productName"`
	SKUName              string        `json:"skuName"`
	ServiceName          string        `json:"serviceName"`
	ServiceID            string        `json:"serviceId"`
	ServiceFamily        string        `json:"serviceFamily"`
	UnitOfMeasure        string        `json:"unitOfMeasure"`
	Type                 string        `json:"type"`
	IsPrimaryMeterRegion bool          `json:"isPrimaryMeterRegion"`
	ArmSKUName           string        `json:"armSkuName"`
	SavingsPlan          []savingsPlan `json:"savingsPlan,omitempty"`
}

type savingsPlan struct {
	UnitPrice   float64 `json:"unitPrice"`
	RetailPrice float64 `json:"retailPrice"`
	Term        string  `json:"term"`
}

// fields gives the item's values by the names that filters use.
func (p priceItem) field(name string) (string, bool) {
	switch strings.ToLower(name) {
	case "pricetype":
		return p.Type, true
	case "currencycode":
		return p.CurrencyCode, true
	case "servicefamily":
		return p.ServiceFamily, true
	case "servicename":
		return p.ServiceName, true
	case "armregionname":
		return p.ArmRegionName, true
	case "armskuname":
		return p.ArmSKUName, true
	case "productname":
		return p.ProductName, true
	case "metername":
		return p.MeterName, true
	case "skuname":
		return p.SKUName, true
	}
	return "", false
}

// priceTerm is one comparison of a filter.
var priceTerm = regexp.MustCompile(`(?i)^\s*([a-z]+)\s+eq\s+'((?:[^']|'')*)'\s*$`)

// parsePriceFilter reads comparisons joined by and.
func parsePriceFilter(filter string) (map[string]string, error) {
	want := map[string]string{}
	if strings.TrimSpace(filter) == "" {
		return want, nil
	}
	for term := range strings.SplitSeq(filter, " and ") {
		m := priceTerm.FindStringSubmatch(term)
		if m == nil {
			return nil, arm.NewError(http.StatusBadRequest, "BadRequest", "Invalid OData parameters supplied: %s", term)
		}
		if _, ok := (priceItem{}).field(m[1]); !ok {
			return nil, arm.NewError(http.StatusBadRequest, "BadRequest", "Invalid OData parameters supplied: unknown field %s", m[1])
		}
		want[m[1]] = strings.ReplaceAll(m[2], "''", "'")
	}
	return want, nil
}

// list answers the retail price API, which needs no sign-in.
func (p *Provider) list(r *http.Request) (arm.Reply, error) {
	q := r.URL.Query()
	want, err := parsePriceFilter(q.Get("$filter"))
	if err != nil {
		return arm.Reply{}, err
	}
	skip, err := strconv.Atoi(q.Get("$skip"))
	if q.Get("$skip") != "" && (err != nil || skip < 0) {
		return arm.Reply{}, arm.NewError(http.StatusBadRequest, "BadRequest", "Invalid OData parameters supplied: $skip=%s", q.Get("$skip"))
	}
	p.sub.Lock.Lock()
	items := p.priceItems(want, q.Get("api-version"))
	p.sub.Lock.Unlock()
	var page []priceItem
	seen, more := 0, false
	for _, item := range items {
		if !item.satisfies(want) {
			continue
		}
		if seen++; seen <= skip {
			continue
		}
		if more = len(page) == pricePage; more {
			break
		}
		page = append(page, item)
	}
	next := any(nil)
	if more {
		v := url.Values{"$filter": {q.Get("$filter")}, "$skip": {strconv.Itoa(skip + pricePage)}}
		if version := q.Get("api-version"); version != "" {
			v.Set("api-version", version)
		}
		next = "https://" + r.Host + "/api/retail/prices?" + v.Encode()
	}
	return arm.Reply{Status: http.StatusOK,
		Body: arm.Document{"BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail",
			"Items": page, "NextPageLink": next, "Count": len(page)}}, nil
}

func (p priceItem) satisfies(want map[string]string) bool {
	for name, value := range want {
		if have, _ := p.field(name); have != value {
			return false
		}
	}
	return true
}

// Price is the price of a size in USD per hour: what Set said, else the catalogue.
// False when it is not sold.
func (p *Provider) Price(size string, spot bool) (float64, bool) {
	return p.price(size, p.sub.Region, spot)
}

func (p *Provider) price(size, region string, spot bool) (float64, bool) {
	if price, ok := p.set[priceKey(size, spot)]; ok && region == p.sub.Region {
		return price, true
	}
	if spot {
		return p.sub.SKUTable.SpotPrice(size, region)
	}
	return p.sub.SKUTable.Price(size, region)
}

func priceKey(size string, spot bool) string { return fmt.Sprint(strings.ToLower(size), " ", spot) }

// Set changes the price of a size in the server's region, in USD per hour. It errs
// when the catalogue does not know the size.
func (p *Provider) Set(size string, spot bool, price float64) error {
	known, ok := p.sub.SKUTable.Size(size)
	if !ok || price <= 0 {
		return fmt.Errorf("cannot set the price of %q to %v: give a size of the catalogue and a price above 0", size, price)
	}
	p.set[priceKey(known.Name, spot)] = price
	clear(p.meterTable)
	return nil
}

// priceItems lists the meters of the region that the filter names, or of all. A
// size has several: Linux and Windows, each with spot and low priority, and
// here and there an old meter that is not the primary one of its region. The
// meters of a region are made once and again after Set.
func (p *Provider) priceItems(want map[string]string, version string) []priceItem {
	regions := p.sub.SKUTable.Regions()
	if name, ok := want["armRegionName"]; ok {
		regions = []string{name}
	}
	var all []priceItem
	for _, region := range regions {
		k := region + " " + version
		if p.meterTable[k] == nil {
			items := []priceItem{}
			for _, size := range p.sizes() {
				if price, sold := p.price(size.Name, region, false); sold {
					items = append(items, p.meters(size, region, price, version)...)
				}
			}
			p.meterTable[k] = items
		}
		all = append(all, p.meterTable[k]...)
	}
	return all
}

// Meter is what machines of a size are billed by.
type Meter struct {
	ID, Name, Product string
	Price             float64 // in USD per hour
}

// Meters are those of the subscription's region. The caller holds the lock.
func (p *Provider) Meters() []Meter {
	var out []Meter
	for _, i := range p.priceItems(map[string]string{"armRegionName": p.sub.Region}, "") {
		out = append(out, Meter{i.MeterID, i.MeterName, i.ProductName, i.UnitPrice})
	}
	return out
}

// Windows adds a licence for each core; low priority, the predecessor of spot,
// cost a fifth of the price.
const (
	windowsPerVCPU   = 0.046
	lowPriorityShare = 0.2
)

func (p *Provider) meters(size skutable.Size, region string, price float64, version string) []priceItem {
	sku := strings.ReplaceAll(size.ShortSize(), "_", " ")
	product := "Virtual Machines " + strings.ReplaceAll(size.Series, "_", "") + " Series"
	base := priceItem{
		CurrencyCode: "USD", ArmRegionName: region, Location: region, EffectiveStartDate: "2026-06-01T00:00:00Z",
		ProductID:   fmt.Sprintf("DZH%09X", p.sub.Random.Hash("product", product)%(1<<36)),
		ServiceName: "Virtual Machines", ServiceID: "DZH313Z7MMC8",
		ServiceFamily: "Compute", UnitOfMeasure: "1 Hour", Type: "Consumption", IsPrimaryMeterRegion: true, ArmSKUName: size.Name,
	}
	item := func(product, suffix string, price float64) priceItem {
		i := base
		i.ProductName, i.SKUName, i.MeterName = product, sku+suffix, sku+suffix
		i.RetailPrice, i.UnitPrice = price, price
		i.MeterID = fmt.Sprintf("%016x", p.sub.Random.Hash("meter", region, product, i.MeterName))
		i.SKUID = i.ProductID + "/" + strings.ToUpper(i.MeterID[:4])
		return i
	}
	linux := item(product, "", price)
	if strings.HasSuffix(version, "-preview") {
		linux.SavingsPlan = []savingsPlan{{price * 0.72, price * 0.72, "1 Year"}, {price * 0.54, price * 0.54, "3 Years"}}
	}
	windows := price + windowsPerVCPU*float64(size.VCPUs)
	items := []priceItem{item(product+" Windows", "", windows), linux, item(product, " Low Priority", price*lowPriorityShare)}
	if spot, ok := p.price(size.Name, region, true); ok {
		items = append(items, item(product, " Spot", spot), item(product+" Windows", " Spot", windows*spot/price))
	}
	if p.sub.Random.Hash("old meter", region, size.Name)%16 == 0 {
		old := item(product, "", price*1.07)
		old.IsPrimaryMeterRegion, old.EffectiveStartDate = false, "2023-02-01T00:00:00Z"
		old.MeterID = fmt.Sprintf("%016x", p.sub.Random.Hash("old meter", region, size.Name))
		items = append(items, old)
	}
	// The API promises no order; that of the meter IDs mixes them well.
	slices.SortFunc(items, func(a, b priceItem) int { return strings.Compare(a.MeterID, b.MeterID) })
	return items
}
