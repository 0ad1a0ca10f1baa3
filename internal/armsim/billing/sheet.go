package billing

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

const (
	typeSheet = "Microsoft.Consumption/pricesheets"
	// pageLines is how many lines a page of a sheet has at most.
	pageLines = 1000
	// fileLines is how many a file of an archive has; the real ones have 200,000.
	fileLines = 2000
	// taskMade: a price sheet is there for download.
	taskMade arm.TaskKind = "pricesheet"
	// filesPath is where the storage is.
	filesPath = "/pricesheets/"
)

// line is one of a price sheet.
type line struct {
	meter, name, product, unit string
	price                      float64 // for the unit
}

// lines are all that the sheet has: the machines of the region at what was agreed, for an
// hour or a hundred, and a disk.
func (p *Provider) lines() []line {
	agreed := 1 - p.config.Discount/100
	var out []line
	for i, m := range p.meters() {
		l := line{meter: m.ID, name: m.Name, product: m.Product, unit: "1 Hour", price: m.Price * agreed}
		if i%2 == 1 {
			l.unit, l.price = "100 Hours", l.price*100
		}
		out = append(out, l)
	}
	return append(out, line{meter: "d15c0000-0000-4000-8000-000000000010", name: "P10 LRS Disk", product: "Premium SSD Managed Disks",
		unit: "1/Month", price: 19.71 * agreed})
}

// sheetOfSubscription is the sheet of an Enterprise Agreement.
func (p *Provider) sheetOfSubscription(c *arm.Call) (arm.Reply, error) {
	if err := onlyDefault(c.Path); err != nil {
		return arm.Reply{}, err
	}
	if p.config.Agreement != Enterprise {
		return arm.Reply{}, arm.NewError(http.StatusNotFound, "404", "Cost management data is not supported for subscription(s) %s "+
			"in the provided api-version. Please use api-version 2019-10-01 or later. (Request ID: %s)", p.sub.ID, c.ID)
	}
	from, size, err := pageOf(c, "$top", pageLines)
	if err != nil {
		return arm.Reply{}, err
	}
	all := p.lines()
	period := p.sub.Path() + "/providers/Microsoft.Billing/billingPeriods/" + p.sub.Clock.Now().Format("200601")
	values := []any{}
	for _, l := range all[min(from, len(all)):min(from+size, len(all))] {
		values = append(values, arm.Document{
			"billingPeriodId": period, "meterId": l.meter, "unitOfMeasure": l.unit, "includedQuantity": 0, "unitPrice": l.price,
			"partNumber": fmt.Sprintf("AAA-%05d", from+len(values)), "currencyCode": p.config.Currency, "offerId": "MS-AZR-0017P",
		})
	}
	properties := arm.Document{"pricesheets": values}
	if from+size < len(all) {
		properties["nextLink"] = c.Base() + c.Path.ID() + "?api-version=" + c.Request.URL.Query().Get("api-version") +
			"&$skiptoken=" + strconv.Itoa(from+size)
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{
		"id": period + "/providers/Microsoft.Consumption/pricesheets/default", "name": "default", "type": typeSheet, "properties": properties,
	}}, nil
}

// pageOf reads from where on and how much a client wants; the name is that of the parameter
// that says how much.
func pageOf(c *arm.Call, name string, most int) (from, size int, err error) {
	q := c.Request.URL.Query()
	number := func(name string, least, unset int) int {
		text := q.Get(name)
		if text == "" {
			return unset
		}
		n, wrong := strconv.Atoi(text)
		if wrong != nil || n < least {
			err = arm.NewError(http.StatusBadRequest, "BadRequest", "Invalid query parameter %s: %s", name, text)
		}
		return n
	}
	from, size = number("$skiptoken", 0, 0), number(name, 1, most)
	return from, min(size, most), err
}

// download starts the making of the sheet of a billing profile.
func (p *Provider) download(c *arm.Call) (arm.Reply, error) {
	if p.config.Agreement != Customer || !strings.EqualFold(c.Path.Extended, accountPath(customerAccount)+"/billingProfiles/"+profile) {
		return arm.Reply{}, arm.NewError(http.StatusNotFound, "NotFound", "The billing profile '%s' was not found.", c.Path.Extended)
	}
	op := p.sub.Operations.Start(c.Route.Action(), c.Path.ID())
	p.sub.Faults.Schedule(p.sub.Random.Sample(p.generation), arm.Target{Operation: c.Route.Action(), Resource: c.Path.ID()},
		arm.Task{Kind: taskMade, Key: c.Path.ID(), Op: op.ID})
	reply := p.sub.Operations.Accepted(c, http.StatusAccepted, op.ID, nil)
	reply.Header.Del("Azure-AsyncOperation")
	reply.Header.Set("Location", c.Base()+accountPath(customerAccount)+"/providers/Microsoft.CostManagement/operationResults/"+op.ID+
		"?api-version="+c.Request.URL.Query().Get("api-version"))
	return reply, nil
}

// downloadResult tells where the file is, once it is there.
func (p *Provider) downloadResult(c *arm.Call) (arm.Reply, error) {
	op := p.sub.Operations.Find(c.Path.Name())
	switch {
	case op == nil:
		return arm.Reply{}, arm.NewError(http.StatusNotFound, "NotFound", "The operation '%s' was not found.", c.Path.Name())
	case op.Ended.IsZero():
		reply := p.sub.Operations.Accepted(c, http.StatusAccepted, op.ID, nil)
		reply.Header.Del("Azure-AsyncOperation")
		reply.Header.Set("Location", c.Base()+c.Request.URL.RequestURI())
		return reply, nil
	case op.Failure != nil:
		return arm.Reply{}, op.Failure
	}
	return arm.Reply{Status: http.StatusOK, Body: arm.Document{
		"downloadUrl": fmt.Sprintf("%s%s%s.zip?sv=2018-03-28&sr=b&sp=r&sig=%s", c.Base(), filesPath, op.ID, p.signature(op.ID)),
		"expiryTime":  arm.Timestamp(p.sub.Clock.Now().Add(fileKept)),
	}}, nil
}

// fileKept is how long the address of a file is good for.
const fileKept = 12 * time.Hour

// signature is that of the address of a file.
func (p *Provider) signature(operation string) string {
	return fmt.Sprintf("%016x", p.sub.Random.Hash("price sheet", operation))
}

// file answers with an archive of CSV files. As storage does, it takes the signature in the
// address and no token beside it.
func (p *Provider) file(r *http.Request) (arm.Reply, error) {
	p.sub.Lock.Lock()
	defer p.sub.Lock.Unlock()
	name, isArchive := strings.CutSuffix(r.PathValue("file"), ".zip")
	if op := p.sub.Operations.Find(name); op == nil || op.Ended.IsZero() || !isArchive {
		return arm.Reply{}, arm.NewError(http.StatusNotFound, "BlobNotFound", "The specified blob does not exist.")
	}
	if r.URL.Query().Get("sig") != p.signature(name) || r.Header.Get("Authorization") != "" {
		return arm.Reply{}, arm.NewError(http.StatusForbidden, "AuthenticationFailed",
			"Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.")
	}
	text, err := p.archive()
	return arm.Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/zip"}}, Body: text}, err
}

// columns are those of the price sheet of a Microsoft Customer Agreement:
// learn.microsoft.com/azure/cost-management-billing/dataset-schema/price-sheet-mca
func columns() []string {
	return []string{"billingAccountId", "billingAccountName", "billingProfileId", "billingProfileName", "productOrderName", "serviceFamily",
		"product", "unitOfMeasure", "meterId", "meterName", "tierMinimumUnits", "effectiveStartDate", "effectiveEndDate", "unitPrice",
		"basePrice", "marketPrice", "currency", "billingCurrency", "priceType", "term"}
}

// archive is the sheet as files of some thousand lines.
func (p *Provider) archive() ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	month := p.sub.Clock.Now().UTC()
	start := month.AddDate(0, 0, 1-month.Day())
	end := start.AddDate(0, 1, -1)
	all := p.lines()
	for n := 0; n*fileLines < len(all); n++ {
		into, err := archive.Create(fmt.Sprintf("part_%d_0001.csv", n))
		if err != nil {
			return nil, err
		}
		w := csv.NewWriter(into)
		records := [][]string{columns()}
		for _, l := range all[n*fileLines : min((n+1)*fileLines, len(all))] {
			price := strconv.FormatFloat(l.price, 'f', -1, 64)
			retail := strconv.FormatFloat(l.price/(1-p.config.Discount/100), 'f', -1, 64)
			records = append(records, []string{customerAccount, "Contoso", profile, "Contoso", "Azure plan", "Compute", l.product, l.unit,
				l.meter, l.name, "0", start.Format("01/02/2006"), end.Format("01/02/2006"), price, retail, retail,
				p.config.Currency, p.config.Currency, "Consumption", ""})
		}
		if err := w.WriteAll(records); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}
