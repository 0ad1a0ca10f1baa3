package cloudprovider

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// megabyte is AKS's: sizes are told to it in whole ones.
const megabyte = 1 << 20

// megabytes is a quantity in whole megabytes, at least one; 0 when unset. What is
// no quantity does not pass admission.
func megabytes(text *string) int32 {
	if text == nil {
		return 0
	}
	q, err := resource.ParseQuantity(*text)
	if err != nil {
		return 0
	}
	return int32(max(1, q.Value()/megabyte)) //nolint:gosec // beyondAKS has refused what does not fit
}

// beyondAKS says which of the class's amounts are larger than AKS can be told, which
// has 32 bits for each; nil when all fit.
func beyondAKS(s *v1beta1.AKSNodeClassSpec) error {
	var errs []error
	check := func(path string, value int64, unit string) {
		if value > math.MaxInt32 {
			errs = append(errs, fmt.Errorf("%s is more than AKS allows, which is %d%s", path, math.MaxInt32, unit))
		}
	}
	if k := s.Kubelet; k != nil {
		check("spec.kubelet.podPidsLimit", or(k.PodPidsLimit, 0), "; -1 means no limit")
		if q, err := resource.ParseQuantity(or(k.ContainerLogMaxSize, "0")); err == nil {
			check("spec.kubelet.containerLogMaxSize", q.Value()/megabyte, "Mi")
		}
	}
	if c := s.LinuxOSConfig; c != nil && c.SwapFileSize != nil {
		check("spec.linuxOSConfig.swapFileSize", c.SwapFileSize.Value()/megabyte, "Mi")
	}
	if s.LocalDNS == nil {
		return errors.Join(errs...)
	}
	for name, zones := range map[string][]v1beta1.LocalDNSZoneOverride{
		"vnetDNSOverrides": s.LocalDNS.VnetDNSOverrides, "kubeDNSOverrides": s.LocalDNS.KubeDNSOverrides,
	} {
		for _, z := range zones {
			for field, text := range map[string]*string{"cacheDuration": z.CacheDuration, "serveStaleDuration": z.ServeStaleDuration} {
				d, err := time.ParseDuration(or(text, "0s"))
				if err != nil {
					d = math.MaxInt64 // its form is right, so it is too long
				}
				check(fmt.Sprintf("spec.localDNS.%s[%s].%s", name, z.Zone, field), int64(d/time.Second), "s")
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// linuxOS says the class's settings of the operating system in AKS's words.
func linuxOS(c *v1beta1.LinuxOSConfig) *armcontainerservice.LinuxOSConfig {
	if c == nil {
		return nil
	}
	out := &armcontainerservice.LinuxOSConfig{
		TransparentHugePageEnabled: c.TransparentHugePageEnabled, TransparentHugePageDefrag: c.TransparentHugePageDefrag,
	}
	if c.SwapFileSize != nil {
		size := int32(max(1, c.SwapFileSize.Value()/megabyte)) //nolint:gosec // beyondAKS has refused what does not fit
		out.SwapFileSizeMB = &size
	}
	if s := c.Sysctls; s != nil {
		out.Sysctls = &armcontainerservice.SysctlConfig{
			FsAioMaxNr: s.FsAioMaxNr, FsFileMax: s.FsFileMax, FsInotifyMaxUserWatches: s.FsInotifyMaxUserWatches, FsNrOpen: s.FsNrOpen,
			KernelThreadsMax: s.KernelThreadsMax, NetCoreNetdevMaxBacklog: s.NetCoreNetdevMaxBacklog, NetCoreOptmemMax: s.NetCoreOptmemMax,
			NetCoreRmemDefault: s.NetCoreRmemDefault, NetCoreRmemMax: s.NetCoreRmemMax, NetCoreSomaxconn: s.NetCoreSomaxconn,
			NetCoreWmemDefault: s.NetCoreWmemDefault, NetCoreWmemMax: s.NetCoreWmemMax, NetIPv4IPLocalPortRange: s.NetIPv4IPLocalPortRange,
			NetIPv4NeighDefaultGcThresh1: s.NetIPv4NeighDefaultGcThresh1, NetIPv4NeighDefaultGcThresh2: s.NetIPv4NeighDefaultGcThresh2,
			NetIPv4NeighDefaultGcThresh3: s.NetIPv4NeighDefaultGcThresh3, NetIPv4TCPFinTimeout: s.NetIPv4TCPFinTimeout,
			NetIPv4TCPKeepaliveProbes: s.NetIPv4TCPKeepaliveProbes, NetIPv4TCPKeepaliveTime: s.NetIPv4TCPKeepaliveTime,
			NetIPv4TcpkeepaliveIntvl: s.NetIPv4TCPKeepaliveIntvl, NetIPv4TCPMaxSynBacklog: s.NetIPv4TCPMaxSynBacklog,
			NetIPv4TCPMaxTwBuckets: s.NetIPv4TCPMaxTwBuckets, NetIPv4TCPTwReuse: s.NetIPv4TCPTwReuse,
			NetNetfilterNfConntrackBuckets: s.NetNetfilterNfConntrackBuckets, NetNetfilterNfConntrackMax: s.NetNetfilterNfConntrackMax,
			VMMaxMapCount: s.VMMaxMapCount, VMSwappiness: s.VMSwappiness, VMVfsCachePressure: s.VMVfsCachePressure,
		}
	}
	return out
}

// localDNSProfile says the class's DNS cache in AKS's words; nil where the class
// says nothing. Preferred is decided here, so that nodes and planning agree.
func localDNSProfile(c *v1beta1.LocalDNS, enabled bool) *armcontainerservice.LocalDNSProfile {
	if c == nil {
		return nil
	}
	mode := armcontainerservice.LocalDNSModeDisabled
	if enabled {
		mode = armcontainerservice.LocalDNSModeRequired
	}
	return &armcontainerservice.LocalDNSProfile{
		Mode: &mode, VnetDNSOverrides: zoneOverrides(c.VnetDNSOverrides), KubeDNSOverrides: zoneOverrides(c.KubeDNSOverrides),
	}
}

func zoneOverrides(zones []v1beta1.LocalDNSZoneOverride) map[string]*armcontainerservice.LocalDNSOverride {
	out := map[string]*armcontainerservice.LocalDNSOverride{}
	for _, z := range zones {
		out[z.Zone] = &armcontainerservice.LocalDNSOverride{
			QueryLogging:       word[armcontainerservice.LocalDNSQueryLogging](z.QueryLogging),
			Protocol:           word[armcontainerservice.LocalDNSProtocol](z.Protocol),
			ForwardDestination: word[armcontainerservice.LocalDNSForwardDestination](z.ForwardDestination),
			ForwardPolicy:      word[armcontainerservice.LocalDNSForwardPolicy](z.ForwardPolicy),
			ServeStale:         word[armcontainerservice.LocalDNSServeStale](z.ServeStale),
			MaxConcurrent:      z.MaxConcurrent, CacheDurationInSeconds: seconds(z.CacheDuration),
			ServeStaleDurationInSeconds: seconds(z.ServeStaleDuration),
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// word is a value of one of the SDK's lists.
func word[T ~string](s *string) *T {
	if s == nil {
		return nil
	}
	t := T(*s)
	return &t
}

// seconds reads a duration such as 1h30m, whose form admission has checked.
func seconds(text *string) *int32 {
	if text == nil {
		return nil
	}
	d, err := time.ParseDuration(*text)
	if err != nil {
		return nil
	}
	s := int32(d / time.Second) //nolint:gosec // beyondAKS has refused what does not fit
	return &s
}
