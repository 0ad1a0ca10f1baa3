package price

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nodeautoprovision/nap/internal/model"
)

// regionsCSV says where Azure's regions are, in whole degrees.
//
//go:embed regions.csv
var regionsCSV string

// place is a point on the globe, in radians.
type place struct{ latitude, longitude float64 }

// places are those of all regions by name. The file is parsed once; a test excludes
// that it is damaged.
var places = sync.OnceValue(func() map[string]place {
	out := map[string]place{}
	rows, err := csv.NewReader(strings.NewReader(regionsCSV)).ReadAll()
	if err != nil {
		return out
	}
	for _, row := range rows[1:] {
		latitude, err1 := strconv.ParseFloat(row[1], 64)
		longitude, err2 := strconv.ParseFloat(row[2], 64)
		if err1 == nil && err2 == nil {
			out[row[0]] = place{latitude * math.Pi / 180, longitude * math.Pi / 180}
		}
	}
	return out
})

// Regions are the names of all known regions, sorted.
func Regions() []string {
	var out []string
	for name := range places() {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// InChina reports whether a region is of Azure China, of which Azure's public list of prices has
// nothing.
func InChina(region string) bool { return strings.HasPrefix(region, "china") }

// InPublicCloud reports whether a region is of Azure's public cloud: only there the list of prices
// is what a subscription pays without an agreement.
func InPublicCloud(region string) bool {
	return !InChina(region) && !strings.HasPrefix(region, "usgov") && !strings.HasPrefix(region, "usdod")
}

// RegionName is the name by which Azure's API knows a region that a person has written:
// "West Europe" and "westeurope" alike. The error lists the names that begin alike, or
// all of them.
func RegionName(written string) (string, error) {
	name := strings.ToLower(strings.Join(strings.Fields(written), ""))
	if _, known := places()[name]; known {
		return name, nil
	}
	var alike []string
	if meant := model.Alike(name, Regions()); meant != "" {
		alike = append(alike, meant)
	}
	for _, region := range Regions() {
		if !slices.Contains(alike, region) && len(name) >= 3 && (strings.Contains(region, name) || strings.HasPrefix(region, name[:3])) {
			alike = append(alike, region)
		}
	}
	if len(alike) == 0 {
		return "", fmt.Errorf("%q is no Azure region that nap knows; allowed: %s", written, strings.Join(Regions(), ", "))
	}
	return "", fmt.Errorf("%q is no Azure region that nap knows; written alike: %s", written, strings.Join(alike, ", "))
}

// Nearest is the region among some which lies nearest to another one, the region
// itself where it is among them: the first of them where the region's place is not
// known. It panics where there is no region to choose from.
func Nearest(region string, among []string) string {
	if slices.Contains(among, region) {
		return region
	}
	at, known := places()[region]
	if !known {
		return among[0]
	}
	return slices.MinFunc(among, func(a, b string) int {
		switch x, y := at.angle(places()[a]), at.angle(places()[b]); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return strings.Compare(a, b)
	})
}

// angle is the distance of two places on the globe, in radians (haversine formula).
func (p place) angle(q place) float64 {
	s, t := math.Sin((q.latitude-p.latitude)/2), math.Sin((q.longitude-p.longitude)/2)
	return 2 * math.Asin(math.Sqrt(s*s+math.Cos(p.latitude)*math.Cos(q.latitude)*t*t))
}
