package model

import (
	"testing"
	"time"
)

func TestFormatDurationOmitsZeroUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Hour: "1h", 65 * time.Minute: "1h5m", 40 * time.Second: "40s", 10 * time.Minute: "10m",
		time.Hour + 3*time.Second: "1h0m3s", 1499 * time.Millisecond: "1s", 20 * time.Hour: "20h",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}
