package skutable

import (
	"hash/fnv"
	"slices"
)

// fraction turns the parts into a number in [0, 1) that is the same everywhere.
func fraction(parts ...string) float64 {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	// FNV mixes its high bits weakly for short inputs; one multiplicative round repairs that.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return float64(x>>11) / (1 << 53)
}

// Share of sizes by the number of zones that sell them, and of series without spot.
const (
	shareOfThreeZones = 0.75
	shareOfTwoZones   = 0.20
	shareWithoutSpot  = 0.04
)

// Zones lists the availability zones ("1", "2", "3") that sell the size in the
// region. Made up: the established general sizes (D, E and F up to v5) have all
// three, of the others most have three, some two, a few one. Empty when the size
// is not sold there.
func (t *Table) Zones(size, region string) []string {
	if _, sold := t.Price(size, region); !sold {
		return nil
	}
	all := []string{"1", "2", "3"}
	if s, _ := t.Size(size); s.Arch == "amd64" && s.Version <= 5 && slices.Contains([]string{"D", "E", "F"}, s.Family) {
		return all
	}
	x := fraction("zones", size, region)
	pick := int(fraction("which", size, region) * 3)
	switch {
	case x < shareOfThreeZones:
		return all
	case x < shareOfThreeZones+shareOfTwoZones:
		return append(append([]string{}, all[:pick]...), all[pick+1:]...)
	}
	return all[pick : pick+1]
}

// SpotPrice is the spot price in USD per hour; false when the size is not
// offered as spot. Made up: 45 to 90 percent below pay-as-you-go by series and
// region, with a few percent of difference between the sizes of a series.
// Burstable sizes and a few series are never offered.
func (t *Table) SpotPrice(size, region string) (float64, bool) {
	price, sold := t.Price(size, region)
	s, _ := t.Size(size)
	if !sold || !s.SpotCapable() {
		return 0, false
	}
	discount := 0.47 + 0.40*fraction("spot", s.Series, region) + 0.03*fraction("spot", size, region)
	return float64(int(price*(1-discount)*1e6)) / 1e6, true
}

// SpotCapable says whether the size can run as a spot machine at all.
func (s Size) SpotCapable() bool {
	return s.Family != "B" && fraction("no spot", s.Series) >= shareWithoutSpot
}
