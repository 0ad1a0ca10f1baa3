package network

import (
	"encoding/binary"
	"net/http"
	"net/netip"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// addresses are the IPv4 addresses of the subnets.
type addresses struct {
	taken map[string]map[string]bool // by key of the subnet
	last  uint32                     // offset in a subnet where the search for a free address goes on
}

// of is the set of taken addresses of a subnet, by its key.
func (a *addresses) of(subnet string) map[string]bool {
	set := a.taken[subnet]
	if set == nil {
		set = map[string]bool{}
		a.taken[subnet] = set
	}
	return set
}

func (a *addresses) take(subnet, address string)    { a.of(subnet)[address] = true }
func (a *addresses) release(subnet, address string) { delete(a.of(subnet), address) }

// azureReserved counts the addresses of a subnet that Azure keeps: the network,
// the gateway, two for DNS and the broadcast address.
const azureReserved = 5

// capacityOf is the number of addresses that a subnet can give away.
func capacityOf(prefix netip.Prefix) int {
	return max(0, 1<<(32-prefix.Bits())-azureReserved)
}

// subnetPrefix reads the prefix of a subnet's document.
func subnetPrefix(r *arm.Resource) netip.Prefix {
	p, _ := netip.ParsePrefix(arm.Text(r.Doc, "properties", "addressPrefix"))
	return p
}

// free finds the first free address of a subnet besides the ones taken by the caller.
func (a *addresses) free(subnet *arm.Resource, taken map[string]bool) (string, error) {
	prefix, used := subnetPrefix(subnet), a.of(arm.Key(subnet.ID))
	size := capacityOf(prefix)
	if len(used)+len(taken) < size {
		first := binary.BigEndian.Uint32(prefix.Masked().Addr().AsSlice()) + 4
		for range size {
			// The search starts where the last one ended, so that addresses are not reused at once.
			a.last = (a.last + 1) % uint32(size)
			var raw [4]byte
			binary.BigEndian.PutUint32(raw[:], first+a.last)
			if ip := netip.AddrFrom4(raw).String(); !used[ip] && !taken[ip] {
				return ip, nil
			}
		}
	}
	return "", arm.NewError(http.StatusBadRequest, "SubnetIsFull",
		"Subnet %s with address prefix %s does not have enough capacity for %d IP addresses.", arm.LastSegment(subnet.ID), prefix, 1)
}
