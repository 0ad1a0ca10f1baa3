package lab

import (
	"strings"
	"testing"
)

func TestFullDiskIsRefusedWithRemedy(t *testing.T) {
	l := layout(t.TempDir())
	if err := l.enoughRoom(40 << 20); err == nil ||
		!strings.Contains(err.Error(), "has 40 MiB left and a lab needs 256") || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("with 40 MiB left: %v", err)
	}
	if err := l.enoughRoom(leastFree); err != nil {
		t.Errorf("with enough left: %v", err)
	}
	free, err := freeBytes(string(l))
	if err != nil || free == 0 {
		t.Errorf("this disk has %d bytes left, %v", free, err)
	}
	if _, err := freeBytes(string(l) + "/missing"); err == nil {
		t.Error("a folder that is not there has room")
	}
}
