package model

import (
	"strings"
	"time"
)

// FormatDuration writes a duration in whole seconds and without units that are
// zero: 1h, 1h5m, 40s.
func FormatDuration(d time.Duration) string {
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
