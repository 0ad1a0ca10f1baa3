package maintenance

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04 -07:00", text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestScheduleOpenAndCloseTimes(t *testing.T) {
	// 2026-01-01 is a Thursday.
	from := at("2026-01-01 22:30 +02:00")
	four := 4 * time.Hour
	for _, tt := range []struct {
		name     string
		schedule Schedule
		now      string
		open     bool
		until    string
	}{
		{"daily, before the first", Schedule{Kind: Daily, Interval: 1}, "2025-12-30 22:31 +02:00", false, "2026-01-01 22:30 +02:00"},
		{"daily, in it", Schedule{Kind: Daily, Interval: 1}, "2026-01-03 22:30 +02:00", true, "2026-01-04 02:30 +02:00"},
		{"daily, past midnight", Schedule{Kind: Daily, Interval: 1}, "2026-01-04 00:10 +02:00", true, "2026-01-04 02:30 +02:00"},
		{"daily, over", Schedule{Kind: Daily, Interval: 1}, "2026-01-04 02:30 +02:00", false, "2026-01-04 22:30 +02:00"},
		{"daily, asked in another zone", Schedule{Kind: Daily, Interval: 1}, "2026-01-03 21:00 +00:00", true, "2026-01-04 02:30 +02:00"},
		{"every third day", Schedule{Kind: Daily, Interval: 3}, "2026-01-02 23:00 +02:00", false, "2026-01-04 22:30 +02:00"},
		{"weekly", Schedule{Kind: Weekly, Interval: 1, Weekday: time.Tuesday}, "2026-01-06 23:00 +02:00", true, "2026-01-07 02:30 +02:00"},
		{"every second week, in the other", Schedule{Kind: Weekly, Interval: 2, Weekday: time.Tuesday},
			"2026-01-13 23:00 +02:00", false, "2026-01-20 22:30 +02:00"},
		{"on the 31st of a short month", Schedule{Kind: AbsoluteMonthly, Interval: 1, Day: 31},
			"2026-02-28 23:00 +02:00", true, "2026-03-01 02:30 +02:00"},
		{"every third month", Schedule{Kind: AbsoluteMonthly, Interval: 3, Day: 15}, "2026-02-15 23:00 +02:00", false, "2026-04-15 22:30 +02:00"},
		{"on the second Monday", Schedule{Kind: RelativeMonthly, Interval: 1, Weekday: time.Monday, Week: 2},
			"2026-03-01 00:00 +02:00", false, "2026-03-09 22:30 +02:00"},
		{"on the last Friday", Schedule{Kind: RelativeMonthly, Interval: 1, Weekday: time.Friday, Week: LastWeek},
			"2026-02-27 23:00 +02:00", true, "2026-02-28 02:30 +02:00"},
		{"on a blocked day", Schedule{Kind: Daily, Interval: 1, Blocked: []Span{{at("2026-01-03 00:00 +00:00"), at("2026-01-05 00:00 +00:00")}}},
			"2026-01-03 23:00 +02:00", false, "2026-01-06 22:30 +02:00"},
	} {
		tt.schedule.From, tt.schedule.Duration = from, four
		w, err := FromSchedule(tt.schedule)
		if err != nil {
			t.Fatal(err)
		}
		if open, until := w.Open(at(tt.now)); open != tt.open || !until.Equal(at(tt.until)) {
			t.Errorf("%s: at %s open is %t until %s, want %t until %s", tt.name, tt.now, open, until, tt.open, tt.until)
		}
	}
}

func TestOpenHoldsUntilReportedTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{
			Kind:     rapid.SampledFrom([]Kind{Daily, Weekly, AbsoluteMonthly, RelativeMonthly}).Draw(t, "kind"),
			Interval: rapid.IntRange(1, 4).Draw(t, "interval"),
			Weekday:  time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday")),
			Day:      rapid.IntRange(1, 31).Draw(t, "day"), Week: rapid.IntRange(1, LastWeek).Draw(t, "week"),
			From:     at("2026-01-01 00:00 +05:30").Add(time.Duration(rapid.IntRange(0, 400*24*60).Draw(t, "from")) * time.Minute),
			Duration: time.Duration(rapid.IntRange(4, 24).Draw(t, "hours")) * time.Hour,
		}
		w, err := FromSchedule(s)
		if err != nil {
			t.Fatal(err)
		}
		now := at("2026-06-01 00:00 +00:00").Add(time.Duration(rapid.IntRange(0, 400*24*60).Draw(t, "now")) * time.Minute)
		open, until := w.Open(now)
		if !until.After(now) {
			t.Fatalf("at %s: open %t until %s", now, open, until)
		}
		half, _ := w.Open(now.Add(until.Sub(now) / 2))
		then, _ := w.Open(until)
		// A window may follow another at once, when they last a whole day.
		if half != open || !open && !then || open && then && s.Duration < 24*time.Hour {
			t.Fatalf("at %s open is %t until %s; half way it is %t, then %t", now, open, until, half, then)
		}
	})
}

const keyStart, keyEnd = NodeImages + "-start", NodeImages + "-end"

func TestWindowFromConfigMap(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	both := map[string]string{keyStart: "2026-01-02T11:00:00Z", keyEnd: "2026-01-02T15:00:00Z"}
	for _, tt := range []struct {
		name string
		data map[string]string
		now  time.Time
		open bool
	}{
		{"no window", nil, now, true},
		{"blank keys", map[string]string{keyStart: " ", keyEnd: ""}, now, true},
		{"inside", both, now, true},
		{"at its start", both, now.Add(-time.Hour), false},
		{"after it", both, now.Add(3 * time.Hour), false},
	} {
		w, err := FromConfigMap(tt.data, NodeImages)
		if open, _ := w.Open(tt.now); err != nil || open != tt.open {
			t.Errorf("%s: open %t, %v; want %t", tt.name, open, err, tt.open)
		}
	}
}

func TestTrap13MalformedMaintenanceKeysAreNamed(t *testing.T) {
	for text, data := range map[string]map[string]string{
		keyEnd + " is missing":   {keyStart: "2026-01-02T11:00:00Z"},
		keyStart + " is missing": {keyEnd: "2026-01-02T11:00:00Z"},
		`"tomorrow" is no time`:  {keyStart: "tomorrow", keyEnd: "2026-01-02T11:00:00Z"},
		"is not before":          {keyStart: "2026-01-02T12:00:00Z", keyEnd: "2026-01-02T11:00:00Z"},
	} {
		if w, err := FromConfigMap(data, NodeImages); err == nil || !strings.Contains(err.Error(), text) || w.Set() {
			t.Errorf("%v: %v, want an error that says %s", data, err, text)
		}
	}
}

func TestScheduleErrorsAreNamed(t *testing.T) {
	good := Schedule{Kind: Daily, Interval: 1, From: at("2026-01-01 00:00 +00:00"), Duration: 4 * time.Hour}
	for want, change := range map[string]func(*Schedule){
		"durationHours 25":     func(s *Schedule) { s.Duration = 25 * time.Hour },
		"interval of 0":        func(s *Schedule) { s.Interval = 0 },
		"startTime is missing": func(s *Schedule) { s.From = time.Time{} },
		"dayOfMonth 32":        func(s *Schedule) { s.Kind, s.Day = AbsoluteMonthly, 32 },
		"weekIndex 6":          func(s *Schedule) { s.Kind, s.Week = RelativeMonthly, 6 },
		`schedule "yearly"`:    func(s *Schedule) { s.Kind = "yearly" },
	} {
		s := good
		change(&s)
		if _, err := FromSchedule(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error that says %s", err, want)
		}
	}
}
