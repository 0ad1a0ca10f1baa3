package compute

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
	"github.com/nodeautoprovision/nap/internal/skutable"
)

// sizes are the machine sizes of the subscription.
type sizes struct {
	sub          *arm.Subscription
	patterns     []string          // of the sizes that lists name; nil means all
	restrictions []Restriction     // what the subscription may not use
	answers      map[string][]byte // encoded answers of the SKU API by regions
}

// Restriction takes sizes away from the subscription, as the SKU API shows them.
type Restriction struct {
	Size  string   // pattern
	Zones []string // restricted zones; empty: the whole region
}

// isRestricted says whether the subscription may not use a size in a zone.
func (s *sizes) isRestricted(size, zone string) bool {
	for _, r := range s.restrictions {
		if arm.Matches(r.Size, size) && (len(r.Zones) == 0 || slices.Contains(r.Zones, zone)) {
			return true
		}
	}
	return false
}

// locationFilter is the one filter that the SKU API knows.
var locationFilter = regexp.MustCompile(`(?i)^\s*location\s+eq\s+'([^']*)'\s*$`)

// list answers the Resource SKUs API. The answer for a region is encoded
// once: it is large and never changes while the server runs.
func (s *sizes) list(c *arm.Call) (arm.Reply, error) {
	filter := c.Request.URL.Query().Get("$filter")
	regions := s.sub.SKUTable.Regions()
	if filter != "" {
		m := locationFilter.FindStringSubmatch(filter)
		if m == nil {
			return arm.Reply{}, arm.NewError(http.StatusBadRequest, "InvalidParameter",
				"The filter '%s' is not supported. Only location eq '...' is.", filter)
		}
		regions = []string{strings.ToLower(m[1])}
	}
	k := strings.Join(regions, ",")
	if s.answers[k] == nil {
		values := []any{}
		for _, region := range regions {
			for _, size := range s.listed() {
				if _, sold := s.sub.SKUTable.Price(size.Name, region); sold {
					values = append(values, s.sku(size, region))
				}
			}
			if slices.Contains(s.sub.SKUTable.Regions(), region) {
				values = append(values, diskSKU(region))
			}
		}
		raw, err := json.Marshal(arm.Document{"value": values})
		if err != nil {
			return arm.Reply{}, err
		}
		s.answers[k] = raw
	}
	return arm.Reply{Status: http.StatusOK, Body: s.answers[k]}, nil
}

// sku is one size as the SKU API shows it.
func (s *sizes) sku(size skutable.Size, region string) arm.Document {
	zones := s.sub.SKUTable.Zones(size.Name, region)
	info := arm.Document{"location": region, "zones": arm.Texts(zones), "zoneDetails": []any{}}
	if size.UltraSSD() {
		info["zoneDetails"] = []any{arm.Document{"name": arm.Texts(ultraZones(zones)),
			"capabilities": []any{capability("UltraSSDAvailable", "True")}}}
	}
	return arm.Document{
		"resourceType": "virtualMachines", "name": size.Name, "tier": "Standard", "size": size.ShortSize(),
		"family": size.QuotaFamily(), "locations": []any{region}, "locationInfo": []any{info},
		"capabilities": capabilities(size), "restrictions": s.shownRestrictions(size.Name, region),
	}
}

// ultraZones are the zones with ultra disks: all but the last of three.
func ultraZones(zones []string) []string {
	if len(zones) == 3 {
		return zones[:2]
	}
	return zones
}

// diskSKU is one of the entries that are no machines, which clients must skip.
func diskSKU(region string) arm.Document {
	return arm.Document{
		"resourceType": "disks", "name": "Premium_LRS", "tier": "Premium", "size": "P10", "locations": []any{region},
		"locationInfo": []any{arm.Document{"location": region, "zones": arm.Texts([]string{"1", "2", "3"}), "zoneDetails": []any{}}},
		"capabilities": []any{capability("MaxSizeGiB", "128")}, "restrictions": []any{},
	}
}

// shownRestrictions shows what the subscription may not use.
func (s *sizes) shownRestrictions(size, region string) []any {
	out := []any{}
	for _, r := range s.restrictions {
		if region != s.sub.Region || !arm.Matches(r.Size, size) {
			continue
		}
		kind, values := "Location", []string{region}
		info := arm.Document{"locations": []any{region}}
		if len(r.Zones) > 0 {
			kind = "Zone"
			info["zones"] = arm.Texts(r.Zones)
		}
		out = append(out, arm.Document{
			"type": kind, "values": arm.Texts(values), "restrictionInfo": info, "reasonCode": "NotAvailableForSubscription",
		})
	}
	return out
}

func capability(name, value string) arm.Document { return arm.Document{"name": name, "value": value} }

// truth is how Azure writes a boolean capability.
func truth(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// capabilities lists what Azure says of a size, in its words.
func capabilities(size skutable.Size) []any {
	generations := make([]string, len(size.HyperVGenerations))
	for i, g := range size.HyperVGenerations {
		generations[i] = fmt.Sprintf("V%d", g)
	}
	scsiTemp := size.TempDiskGiB
	if size.TempDiskNVMe {
		scsiTemp = 0
	}
	caps := []any{
		capability("MaxResourceVolumeMB", strconv.Itoa(scsiTemp*1024)),
		capability("OSVhdSizeMB", "1047552"),
		capability("vCPUs", strconv.Itoa(size.VCPUs)),
		capability("MemoryPreservingMaintenanceSupported", truth(size.GPUs == 0)),
		capability("HyperVGenerations", strings.Join(generations, ",")),
		capability("DiskControllerTypes", strings.Join(size.DiskControllers(), ", ")),
		capability("MemoryGB", size.MemoryGBText()),
		capability("MaxDataDiskCount", strconv.Itoa(size.MaxDataDisks)),
		capability("CpuArchitectureType", cpuArchitecture(size.Arch)),
		capability("LowPriorityCapable", truth(size.SpotCapable())),
		capability("PremiumIO", truth(size.PremiumStorage)),
		capability("VMDeploymentTypes", "IaaS"),
		capability("vCPUsAvailable", strconv.Itoa(size.VCPUs)),
		capability("vCPUsPerCore", "2"),
		capability("EphemeralOSDiskSupported", truth(size.EphemeralOSPlacements() != nil)),
		capability("EncryptionAtHostSupported", truth(size.EncryptionAtHost())),
		capability("CapacityReservationSupported", truth(size.Family != "B")),
		capability("AcceleratedNetworkingEnabled", truth(size.AcceleratedNetworking())),
		capability("RdmaEnabled", "False"),
		capability("MaxNetworkInterfaces", strconv.Itoa(size.MaxNICs())),
	}
	if size.GPUs > 0 {
		caps = append(caps, capability("GPUs", strconv.Itoa(size.GPUs)))
	}
	if size.CachedDiskGiB() > 0 {
		caps = append(caps, capability("CachedDiskBytes", strconv.FormatInt(int64(size.CachedDiskGiB())<<30, 10)))
	}
	if size.TempDiskNVMe {
		caps = append(caps, capability("NvmeDiskSizeInMiB", strconv.Itoa(size.TempDiskGiB*1024)))
	}
	if p := size.EphemeralOSPlacements(); p != nil {
		caps = append(caps, capability("SupportedEphemeralOSDiskPlacements", strings.Join(p, ",")))
	}
	if size.TrustedLaunchDisabled() {
		caps = append(caps, capability("TrustedLaunchDisabled", "True"))
	}
	return caps
}

// checkEphemeral refuses an ephemeral OS disk that does not fit its place.
func checkEphemeral(m Spec, size skutable.Size) error {
	placements := size.EphemeralOSPlacements()
	placement := m.Placement
	if placement == "" { // Azure's own choice: the cache when there is one
		placement = "CacheDisk"
		if !slices.Contains(placements, placement) {
			placement = "ResourceDisk"
		}
	}
	room := 0
	switch placement {
	case "CacheDisk":
		room = size.CachedDiskGiB()
	case "ResourceDisk", "NvmeDisk":
		room = size.TempDiskGiB
	}
	if !slices.ContainsFunc(placements, func(p string) bool { return strings.EqualFold(p, placement) }) {
		room = 0
	}
	if m.OSDiskGB <= room {
		return nil
	}
	return arm.NewError(http.StatusConflict, "VMCannotFitEphemeralOSDisk",
		"OS disk of Ephemeral VM with size greater than %d GB is not allowed for VM size %s when the DiffDiskPlacement is %s.",
		room, m.Size, placement)
}

// listed are the sizes that lists of sizes, usages and prices name.
func (s *sizes) listed() []skutable.Size {
	if s.patterns == nil {
		return s.sub.SKUTable.Sizes()
	}
	var out []skutable.Size
	for _, size := range s.sub.SKUTable.Sizes() {
		if slices.ContainsFunc(s.patterns, func(pattern string) bool { return arm.Matches(pattern, size.Name) }) {
			out = append(out, size)
		}
	}
	return out
}
