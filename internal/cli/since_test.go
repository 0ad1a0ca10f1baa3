package cli

import (
	"testing"
	"time"
)

func TestSinceIsNeitherToComeNorTooLongAgo(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for since, want := range map[string]string{
		"7d": "2026-11-21T12:00:00Z", "0d": "2026-11-28T12:00:00Z", "24h": "2026-11-27T12:00:00Z", "2026-11-22": "2026-11-22T00:00:00Z",
		"2026-11-28": "2026-11-28T00:00:00Z", "3660d": "2016-11-20T12:00:00Z",
		"3661d": "", "99999999d": "", "99999999999999999999d": "", "1000000h": "", "2026-11-29": "", "0001-01-01": "", "-1d": "", "-1h": "", "x": "",
	} {
		got, err := sinceWhen(since, now)
		if want == "" {
			if err == nil {
				t.Errorf("%s: got %v, want an error", since, got)
			}
		} else if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s: got %v, %v, want %s", since, got, err, want)
		}
	}
}
