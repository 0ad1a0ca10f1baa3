package ratelimit

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfterFormsAndBound(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for name, c := range map[string]struct {
		header map[string]string
		want   time.Duration
	}{
		"seconds":                   {map[string]string{"Retry-After": "17"}, 17 * time.Second},
		"none":                      {nil, time.Second},
		"nothing at all to wait":    {map[string]string{"Retry-After": "0"}, 0},
		"milliseconds first":        {map[string]string{"Retry-After-Ms": "250", "Retry-After": "17"}, 250 * time.Millisecond},
		"a date and Azure's clock":  {map[string]string{"Retry-After": in(time.Hour + 30*time.Second), "Date": in(time.Hour)}, 30 * time.Second},
		"a date alone":              {map[string]string{"Retry-After": in(40 * time.Second)}, 40 * time.Second},
		"a date that is past":       {map[string]string{"Retry-After": in(-time.Minute)}, time.Second},
		"words":                     {map[string]string{"Retry-After": "soon"}, time.Second},
		"less than nothing":         {map[string]string{"Retry-After": "-3"}, time.Second},
		"a day":                     {map[string]string{"Retry-After": "86400"}, longestPause},
		"more than a duration hold": {map[string]string{"Retry-After": "9223372036854775807"}, longestPause},
		"a date in years":           {map[string]string{"Retry-After": in(24 * 365 * time.Hour)}, longestPause},
	} {
		header := http.Header{}
		for key, value := range c.header {
			header.Set(key, value)
		}
		if got := retryAfter(&http.Response{Header: header}, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
