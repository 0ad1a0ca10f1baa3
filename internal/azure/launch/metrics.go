package launch

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nodeautoprovision/nap/internal/azure/instancetype"
	"github.com/nodeautoprovision/nap/internal/azure/unavailable"
	"github.com/nodeautoprovision/nap/internal/model"
)

// The phases of a launch in which it can fail: Azure refuses it, or gives it up
// after it has accepted it.
const (
	phaseSync  = "sync"
	phaseAsync = "async"
)

// unknownError stands for a failure that is no answer of Azure's.
const unknownError = "UnknownError"

// Metrics count what is asked of Azure and what becomes of it, under the names and
// labels by which users of Karpenter on Azure know them.
type Metrics struct {
	region string
	aks    bool // what is started are AKS machines
	// By kind: of plain virtual machines, and of AKS machines.
	started, failed map[bool]*prometheus.CounterVec
}

// NewMetrics registers the metrics; a nil registerer keeps them to themselves. aks
// says which kind of machine is started. Two providers of a process share them.
func NewMetrics(reg prometheus.Registerer, region string, aks bool) (*Metrics, error) {
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	labels := []string{"image", "size", "zone", "capacity_type", "nodepool"}
	var errs error
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "karpenter", Subsystem: "instance", Name: name, Help: help}, labels)
		err := reg.Register(c)
		var known prometheus.AlreadyRegisteredError
		if errors.As(err, &known) {
			if existing, ok := known.ExistingCollector.(*prometheus.CounterVec); ok {
				return existing
			}
		}
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("register metric karpenter_instance_%s: %w", name, err))
		}
		return c
	}
	m := &Metrics{region: region, aks: aks, started: map[bool]*prometheus.CounterVec{}, failed: map[bool]*prometheus.CounterVec{}}
	for kind, name := range map[bool]string{false: "vm", true: "aks_machine"} {
		m.started[kind] = counter(name+"_create_start_total", "Machines that Azure was asked for.", labels...)
		m.failed[kind] = counter(name+"_create_failure_total", "Machines that Azure refused, or gave up after it had accepted them.",
			append(labels, "phase", "error_code")...)
	}
	return m, errs
}

func (m *Metrics) values(image, size, azureZone string, capacityType model.CapacityType, pool string) []string {
	return []string{image, size, instancetype.ZoneLabel(m.region, azureZone), string(capacityType), pool}
}

func (m *Metrics) asked(s NodeSpec) []string {
	return m.values(s.Image.ID, s.SKU.Name, s.Zone, s.CapacityType, s.Pool)
}

// start counts a machine that Azure is about to be asked for.
func (m *Metrics) start(s NodeSpec) { m.started[m.aks].WithLabelValues(m.asked(s)...).Inc() }

// refused counts a machine that Azure did not accept; failure is nil where that was
// no answer of Azure's.
func (m *Metrics) refused(s NodeSpec, failure *unavailable.Failure) {
	m.failed[m.aks].WithLabelValues(append(m.asked(s), phaseSync, code(failure))...).Inc()
}

// gaveUp counts a machine that failed after Azure had accepted it.
func (m *Metrics) gaveUp(x Machine, failure *unavailable.Failure) {
	m.failed[x.AKS].WithLabelValues(append(m.values(x.ImageID, x.Size, x.Zone, x.CapacityType, x.Pool), phaseAsync, code(failure))...).Inc()
}

func code(failure *unavailable.Failure) string {
	if failure == nil {
		return unknownError
	}
	return strings.ToValidUTF8(cmp.Or(failure.Code, unknownError), "?")
}
