package instancetype

import (
	"testing"

	"github.com/nodeautoprovision/nap/internal/skutable"
)

func TestParseSizeParts(t *testing.T) {
	tests := []struct {
		name    string
		size    Size
		series  string
		version string
	}{
		{"Standard_D4s_v5", Size{Family: "D", CPUs: "4", Features: "s", Version: "v5"}, "Ds_v5", "5"},
		{"Standard_D2pls_v6", Size{Family: "D", CPUs: "2", Features: "pls", Version: "v6"}, "Dpls_v6", "6"},
		{"Standard_DS2_v2", Size{Family: "D", Subfamily: "S", CPUs: "2", Version: "v2"}, "DS_v2", "2"},
		{"Standard_NC24ads_A100_v4", Size{
			Family: "N", Subfamily: "C", CPUs: "24", Features: "ads", Accelerator: "A100", Version: "v4",
		}, "NCads_A100_v4", "4"},
		{"Standard_NC6s_v3", Size{Family: "N", Subfamily: "C", CPUs: "6", Features: "s", Version: "v3"}, "NCs_v3", "3"},
		{"Standard_NC6_Promo", Size{Family: "N", Subfamily: "C", CPUs: "6", Promo: true}, "NC", "1"},
		{"Standard_E8-2s_v5", Size{Family: "E", CPUs: "8", Constrained: "2", Features: "s", Version: "v5"}, "Es_v5", "5"},
		{"Standard_M416s_8_v2", Size{Family: "M", CPUs: "416", Constrained: "8", Features: "s", Version: "v2"}, "Ms_v2", "2"},
		{"Standard_ND96isr_MI300X_v5",
			Size{Family: "N", Subfamily: "D", CPUs: "96", Features: "isr", Accelerator: "MI300X", Version: "v5"}, "NDisr_MI300X_v5", "5"},
		{"Standard_ND96isr_H100_v5", Size{
			Family: "N", Subfamily: "D", CPUs: "96", Features: "isr", Accelerator: "H100", Version: "v5",
		}, "NDisr_H100_v5", "5"},
		{"Standard_DC4as_cc_v5", Size{Family: "D", Subfamily: "C", CPUs: "4", Features: "as", Version: "v5"}, "DCas_v5", "5"},
		{"Standard_F2", Size{Family: "F", CPUs: "2"}, "F", "1"},
	}
	for _, tt := range tests {
		got, err := ParseSize(tt.name)
		if err != nil || got != tt.size {
			t.Errorf("%s: read as %+v, %v; want %+v", tt.name, got, err, tt.size)
		}
		if got.Series() != tt.series || got.VersionNumber() != tt.version {
			t.Errorf("%s: series %q version %q, want %q and %q", tt.name, got.Series(), got.VersionNumber(), tt.series, tt.version)
		}
	}
}

func TestParseSizeRefusesUnconventionalNames(t *testing.T) {
	for _, name := range []string{"", "Standard_", "standard_d4s_v5", "Standard_D4s_v5_extra_words", "Standard_4D"} {
		if s, err := ParseSize(name); err == nil {
			t.Errorf("%q was read as %+v", name, s)
		}
	}
}

func TestParseSizeOfEveryKnownSize(t *testing.T) {
	table, err := skutable.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, known := range table.Sizes() {
		s, err := ParseSize(known.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		if known.GPUs > 0 && s.GPUVendor() != known.GPUManufacturer {
			t.Errorf("%s: GPU vendor %s, want %s", known.Name, s.GPUVendor(), known.GPUManufacturer)
		}
	}
}

func FuzzParseSizeNeverPanics(f *testing.F) {
	for _, seed := range []string{"Standard_D4s_v5", "Standard_NC24ads_A100_v4", "M416s_8_v2", "Basic_A0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s, err := ParseSize(name)
		if err == nil && (s.Family == "" || s.CPUs == "") {
			t.Errorf("%q was read as %+v", name, s)
		}
	})
}
