package maintenance

import (
	"errors"
	"fmt"
	"time"
)

// Kind is how the days of a schedule are chosen.
type Kind string

// The kinds of schedules that AKS has.
const (
	Daily           Kind = "daily"
	Weekly          Kind = "weekly"
	AbsoluteMonthly Kind = "absoluteMonthly" // on a day of the month
	RelativeMonthly Kind = "relativeMonthly" // on a weekday of a week of the month
)

// LastWeek is the week index of the last such weekday of a month.
const LastWeek = 5

// Schedule is a window that comes again.
type Schedule struct {
	Kind Kind
	// Interval is every how many days, weeks or months it comes.
	Interval int
	// Weekday is of Weekly and RelativeMonthly, Day (1 to 31) of AbsoluteMonthly,
	// Week (1 to 4, or LastWeek) of RelativeMonthly.
	Weekday   time.Weekday
	Day, Week int
	// From is the first moment at which a window may begin. Its clock time and zone
	// are those of all windows, and intervals are counted from its day.
	From time.Time
	// Duration is how long it stays open, 4 to 24 hours.
	Duration time.Duration
	// Blocked are days on which none begins, from the first to the last.
	Blocked []Span
}

// Span are days, both ends included; only the dates count.
type Span struct{ First, Last time.Time }

func (s *Schedule) validate() error {
	const fewest, most = time.Hour, 24 * time.Hour
	switch {
	case s.Duration < fewest || s.Duration > most:
		return fmt.Errorf("durationHours %v: allowed are 1 to 24", s.Duration.Hours())
	case s.Interval < 1:
		return fmt.Errorf("an interval of %d: allowed is 1 and more", s.Interval)
	case s.From.IsZero():
		return errors.New("startTime is missing")
	case s.Kind == AbsoluteMonthly && (s.Day < 1 || s.Day > 31):
		return fmt.Errorf("dayOfMonth %d: allowed are 1 to 31", s.Day)
	case s.Kind == RelativeMonthly && (s.Week < 1 || s.Week > LastWeek):
		return fmt.Errorf("weekIndex %d: allowed are 1 to 4, and %d for the last", s.Week, LastWeek)
	}
	switch s.Kind {
	case Daily, Weekly, AbsoluteMonthly, RelativeMonthly:
		return nil
	}
	return fmt.Errorf("schedule %q: allowed are %s, %s, %s, %s", s.Kind, Daily, Weekly, AbsoluteMonthly, RelativeMonthly)
}

// farthest is how far ahead the next window is looked for.
const farthest = 800 // days

// open looks at yesterday's window, which may last into today, and from there on.
func (s *Schedule) open(now time.Time) (bool, time.Time) {
	local := now.In(s.From.Location())
	for day := -1; day < farthest; day++ {
		begin, is := s.begins(local.AddDate(0, 0, day))
		switch {
		case !is || !now.Before(begin.Add(s.Duration)):
		case now.Before(begin):
			return false, begin
		default:
			return true, begin.Add(s.Duration)
		}
	}
	return false, time.Time{}
}

// begins is when the window of a day begins; false when the day has none.
func (s *Schedule) begins(day time.Time) (time.Time, bool) {
	f := s.From
	begin := time.Date(day.Year(), day.Month(), day.Day(), f.Hour(), f.Minute(), 0, 0, f.Location())
	if begin.Before(f) || !s.onDay(begin) {
		return begin, false
	}
	for _, b := range s.Blocked {
		if date := dayNumber(begin); date >= dayNumber(b.First) && date <= dayNumber(b.Last) {
			return begin, false
		}
	}
	return begin, true
}

// onDay applies the schedule's rule.
func (s *Schedule) onDay(day time.Time) bool {
	const week = 7
	switch s.Kind {
	case Daily:
		return (dayNumber(day)-dayNumber(s.From))%s.Interval == 0
	case Weekly:
		// Weeks are counted from the one in which the first window lies.
		first := dayNumber(s.From) + (int(s.Weekday)-int(s.From.Weekday())+week)%week
		return day.Weekday() == s.Weekday && (dayNumber(day)-first)/week%s.Interval == 0
	case AbsoluteMonthly:
		// In a month that is too short its last day counts.
		return s.inMonth(day) && day.Day() == min(s.Day, daysIn(day))
	case RelativeMonthly:
		if !s.inMonth(day) || day.Weekday() != s.Weekday {
			return false
		}
		if s.Week == LastWeek {
			return day.Day()+week > daysIn(day)
		}
		return (day.Day()-1)/week+1 == s.Week
	}
	return false
}

func (s *Schedule) inMonth(day time.Time) bool {
	const year = 12
	months := (day.Year()-s.From.Year())*year + int(day.Month()) - int(s.From.Month())
	return months%s.Interval == 0
}

// dayNumber counts days, whatever the zone.
func dayNumber(t time.Time) int {
	const seconds = 24 * 60 * 60
	return int(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix() / seconds)
}

func daysIn(t time.Time) int {
	return time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// String says in words when the windows are.
func (s *Schedule) String() string {
	when := map[Kind]string{
		Daily:           fmt.Sprintf("every %d days", s.Interval),
		Weekly:          fmt.Sprintf("every %d weeks on %s", s.Interval, s.Weekday),
		AbsoluteMonthly: fmt.Sprintf("every %d months on day %d", s.Interval, s.Day),
		RelativeMonthly: fmt.Sprintf("every %d months on %s of week %d", s.Interval, s.Weekday, s.Week),
	}[s.Kind]
	return fmt.Sprintf("%s at %s for %s", when, s.From.Format("15:04 -07:00"), s.Duration)
}
