package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"

	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/maintenance"
)

// windowFor is how long the cluster's maintenance window is believed at most, unreadFor for
// how long one that cannot be read is not asked for again: drift asks for each NodeClaim.
const (
	windowFor = 5 * time.Minute
	unreadFor = time.Minute
)

// windowReader reads the cluster's maintenance windows and remembers them for a while.
type windowReader struct {
	config *config.Config
	client *armcontainerservice.MaintenanceConfigurationsClient
	now    func() time.Time

	mu   sync.Mutex
	seen map[string]seenWindow // by maintenance configuration
}

// seenWindow is a window as it was read last.
type seenWindow struct {
	window maintenance.Window
	read   time.Time // when that was; zero before the first time
	// failed is when it could not be read the last time, and why; nil when it could.
	failed time.Time
	why    error
}

// MaintenanceWindow is the cluster's own window of a maintenance configuration,
// [maintenance.NodeImages] or [maintenance.Kubernetes], as Azure has it. Without one, or
// when the cluster's resource group is not known, it is the zero window. An error means
// that it is not known whether there is one; the window of the last successful reading
// comes with it.
func (p *Provider) MaintenanceWindow(ctx context.Context, name string) (maintenance.Window, error) {
	return p.windows.get(ctx, name)
}

// get implements Provider.MaintenanceWindow.
func (m *windowReader) get(ctx context.Context, name string) (maintenance.Window, error) {
	if m.config.ResourceGroup == "" {
		return maintenance.Window{}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last := m.seen[name]
	if now := m.now(); !last.read.IsZero() && now.Sub(last.read) < min(windowFor, config.UpgradesBelieved(m.config)) {
		return last.window, nil
	}
	if last.why != nil && m.now().Sub(last.failed) < unreadFor {
		return last.window, last.why
	}
	window, err := m.read(ctx, name)
	if err != nil {
		if ctx.Err() == nil { // else Azure has not answered
			last.failed, last.why = m.now(), err
			m.seen[name] = last
		}
		return last.window, err
	}
	m.seen[name] = seenWindow{window: window, read: m.now()}
	return window, nil
}

// read asks Azure for a window; the zero one where there is no such configuration.
func (m *windowReader) read(ctx context.Context, name string) (maintenance.Window, error) {
	answer, err := m.client.Get(ctx, m.config.ResourceGroup, m.config.ClusterName, name, nil)
	var refusal *azcore.ResponseError
	if errors.As(err, &refusal) && refusal.StatusCode == http.StatusNotFound {
		return maintenance.Window{}, nil
	}
	if err != nil {
		return maintenance.Window{}, fmt.Errorf("read maintenance configuration %s of cluster %s: %w", name, m.config.ClusterName, err)
	}
	window, err := WindowOf(answer.Properties)
	if err != nil {
		return maintenance.Window{}, fmt.Errorf("maintenance configuration %s of cluster %s: %w", name, m.config.ClusterName, err)
	}
	return window, nil
}

// WindowOf reads a maintenance configuration. One without a window is none.
func WindowOf(p *armcontainerservice.MaintenanceConfigurationProperties) (maintenance.Window, error) {
	if p == nil || p.MaintenanceWindow == nil || p.MaintenanceWindow.Schedule == nil {
		return maintenance.Window{}, nil
	}
	w := p.MaintenanceWindow
	s, err := scheduleOf(w.Schedule)
	if err != nil {
		return maintenance.Window{}, err
	}
	s.Duration = time.Duration(value(w.DurationHours)) * time.Hour
	offset := value(w.UTCOffset)
	if offset == "" {
		offset = "+00:00"
	}
	begin, err := time.Parse("15:04 -07:00", value(w.StartTime)+" "+offset)
	if err != nil {
		return maintenance.Window{}, fmt.Errorf("startTime %q with utcOffset %q: they must read as 02:00 and +02:00", value(w.StartTime), offset)
	}
	from := time.Unix(0, 0).UTC()
	if w.StartDate != nil {
		from = *w.StartDate
	}
	s.From = time.Date(from.Year(), from.Month(), from.Day(), begin.Hour(), begin.Minute(), 0, 0, begin.Location())
	for _, d := range w.NotAllowedDates {
		if d != nil && d.Start != nil && d.End != nil {
			s.Blocked = append(s.Blocked, maintenance.Span{First: *d.Start, Last: *d.End})
		}
	}
	return maintenance.FromSchedule(s)
}

func scheduleOf(s *armcontainerservice.Schedule) (maintenance.Schedule, error) {
	switch {
	case s.Daily != nil:
		return maintenance.Schedule{Kind: maintenance.Daily, Interval: int(value(s.Daily.IntervalDays))}, nil
	case s.Weekly != nil:
		day, err := weekday(s.Weekly.DayOfWeek)
		return maintenance.Schedule{Kind: maintenance.Weekly, Interval: int(value(s.Weekly.IntervalWeeks)), Weekday: day}, err
	case s.AbsoluteMonthly != nil:
		return maintenance.Schedule{
			Kind: maintenance.AbsoluteMonthly, Interval: int(value(s.AbsoluteMonthly.IntervalMonths)), Day: int(value(s.AbsoluteMonthly.DayOfMonth)),
		}, nil
	case s.RelativeMonthly != nil:
		day, err := weekday(s.RelativeMonthly.DayOfWeek)
		weeks := map[armcontainerservice.Type]int{
			armcontainerservice.TypeFirst: 1, armcontainerservice.TypeSecond: 2, armcontainerservice.TypeThird: 3,
			armcontainerservice.TypeFourth: 4, armcontainerservice.TypeLast: maintenance.LastWeek,
		}
		return maintenance.Schedule{
			Kind: maintenance.RelativeMonthly, Interval: int(value(s.RelativeMonthly.IntervalMonths)),
			Weekday: day, Week: weeks[value(s.RelativeMonthly.WeekIndex)],
		}, err
	}
	return maintenance.Schedule{}, errors.New("its schedule is none of daily, weekly, absoluteMonthly, relativeMonthly")
}

func weekday(d *armcontainerservice.WeekDay) (time.Weekday, error) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.EqualFold(day.String(), string(value(d))) {
			return day, nil
		}
	}
	return 0, fmt.Errorf("dayOfWeek %q is no day of the week", value(d))
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
