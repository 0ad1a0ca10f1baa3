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
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

// megabyte is AKS's: sizes are told to it in whole ones.
const megabyte = 1 << 20

// bytesOf reads a size whose form admission has checked, such as 50Mi or 2K: the API's form
// has K for thousands, where Kubernetes writes k. 0 when unset.
func bytesOf(text *string) int64 {
	if text == nil {
		return 0
	}
	size := *text
	if thousands, ok := strings.CutSuffix(size, "K"); ok {
		size = thousands + "k"
	}
	q, err := resource.ParseQuantity(size)
	if err != nil {
		return 0
	}
	return q.Value()
}

// wholeMegabytes is a size in bytes to the nearest megabyte.
func wholeMegabytes(bytes int64) int64 {
	return bytes/megabyte + (bytes%megabyte+megabyte/2)/megabyte
}

// megabytes is a size in whole megabytes, at least one; 0 when unset.
func megabytes(text *string) int32 {
	bytes := bytesOf(text)
	if bytes == 0 {
		return 0
	}
	return int32(max(1, wholeMegabytes(bytes))) //nolint:gosec // beyondAKS has refused what does not fit
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
		check("spec.kubelet.containerLogMaxSize", wholeMegabytes(bytesOf(k.ContainerLogMaxSize)), "Mi")
	}
	if c := s.LinuxOSConfig; c != nil {
		check("spec.linuxOSConfig.swapFileSize", wholeMegabytes(bytesOf(c.SwapFileSize)), "Mi")
	}
	if s.LocalDNS == nil {
		return errors.Join(errs...)
	}
	for name, zones := range map[string][]v1beta1.LocalDNSZoneOverride{
		"vnetDNSOverrides": s.LocalDNS.VnetDNSOverrides, "kubeDNSOverrides": s.LocalDNS.KubeDNSOverrides,
	} {
		for _, z := range zones {
			for field, d := range map[string]karpv1.NillableDuration{"cacheDuration": z.CacheDuration, "serveStaleDuration": z.ServeStaleDuration} {
				check(fmt.Sprintf("spec.localDNS.%s[%s].%s", name, z.Zone, field), int64(or(d.Duration, 0)/time.Second), "s")
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// linuxOS says the class's settings of the operating system in AKS's words.
func linuxOS(c *v1beta1.LinuxOSConfiguration) *armcontainerservice.LinuxOSConfig {
	if c == nil {
		return nil
	}
	out := &armcontainerservice.LinuxOSConfig{
		TransparentHugePageEnabled: c.TransparentHugePageEnabled, TransparentHugePageDefrag: c.TransparentHugePageDefrag,
	}
	if c.SwapFileSize != nil {
		size := megabytes(c.SwapFileSize)
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

// word is a value of one of the SDK's lists; nil where the class says nothing.
func word[T ~string](s string) *T {
	if s == "" {
		return nil
	}
	t := T(s)
	return &t
}

// seconds is a duration in whole seconds; nil where the class says nothing.
func seconds(d karpv1.NillableDuration) *int32 {
	if d.Duration == nil {
		return nil
	}
	s := int32(*d.Duration / time.Second) //nolint:gosec // beyondAKS has refused what does not fit
	return &s
}
