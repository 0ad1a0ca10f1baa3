package providertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim/armtest"
	"github.com/nodeautoprovision/nap/internal/azure/config"
	"github.com/nodeautoprovision/nap/internal/azure/image"
	"github.com/nodeautoprovision/nap/internal/azure/nodeclass"
)

func TestImagesOfFamilyInOrderOfPreference(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, tt := range []struct {
			family, version string
			trusted         bool
			want            string
		}{
			{"Ubuntu", "1.34.0", false, "2404gen2containerd/amd64/2 2404containerd/amd64/1 2404gen2arm64containerd/arm64/2"},
			{"Ubuntu", "1.33.9", false, "2204gen2containerd/amd64/2 2204containerd/amd64/1 2204gen2arm64containerd/arm64/2"},
			{"Ubuntu2204", "1.35.1", true, "2204gen2TLcontainerd/amd64/2"},
			{"AzureLinux", "1.32.0", false, "V3gen2/amd64/2 V3/amd64/1 V3gen2arm64/arm64/2"},
			{"AzureLinux", "1.31.0", false, "V2gen2/amd64/2 V2/amd64/1 V2gen2arm64/arm64/2"},
		} {
			class := *w.class
			class.ImageFamily, class.VTPM = tt.family, tt.trusted
			images, err := w.provider.ResolveImages(t.Context(), &class, tt.version)
			if err != nil {
				t.Errorf("%s %s: %v", tt.family, tt.version, err)
				continue
			}
			var got []string
			for _, i := range images {
				got = append(got, i.Definition+"/"+i.Arch+"/"+string(rune('0'+i.Generation)))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%s %s: %v, want %s", tt.family, tt.version, got, tt.want)
			}
		}
	})
}

func TestImagesNewVersionIsFoundUnlessPinned(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		old := versionOf(w.class.Images[0].ID)
		w.Server.PublishImages("202701.01.0")
		time.Sleep(2 * time.Hour)
		for pin, want := range map[string]string{"": "202701.01.0", old: old} {
			class := *w.class
			class.ImageVersion = pin
			images, err := w.provider.ResolveImages(t.Context(), &class, "1.35.1")
			if err != nil || versionOf(images[0].ID) != want {
				t.Errorf("pinned to %q: %v, %v; want version %s", pin, images, err, want)
			}
		}
		class := *w.class
		class.ImageVersion = "199001.01.0"
		if _, err := w.provider.ResolveImages(t.Context(), &class, "1.35.1"); !errors.Is(err, image.ErrNotFound) ||
			!strings.Contains(err.Error(), "spec.imageVersion") {
			t.Errorf("a version that never was: %v", err)
		}
		class.ImageVersion, class.FIPS = "", true
		if _, err := w.provider.ResolveImages(t.Context(), &class, "1.35.1"); !errors.Is(err, image.ErrFIPS) {
			t.Errorf("FIPS: %v", err)
		}
	})
}

func versionOf(id string) string { return id[strings.LastIndex(id, "/")+1:] }

const galleries = "aaaaaaaa-0000-4000-8000-00000000000a"

func (w *world) useSharedGalleries(t *testing.T) {
	t.Helper()
	w.stop()
	w.config.SIGSubscriptionID = galleries
	w.start(t)
}

func TestFIPSImagesNeedSharedGalleries(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fips := nodeclass.NodeClass{FIPS: true, ImageFamily: "AzureLinux"}
		if _, err := w.provider.ResolveImages(t.Context(), &fips, "1.35.1"); !errors.Is(err, image.ErrFIPS) {
			t.Errorf("without shared galleries: %v", err)
		}
		w.useSharedGalleries(t)
		for name, c := range map[string]struct {
			class nodeclass.NodeClass
			want  []string // definitions; none is refused
		}{
			"AzureLinux": {nodeclass.NodeClass{ImageFamily: "AzureLinux"}, []string{"V3gen2fips", "V3fips", "V3gen2arm64fips"}},
			"Ubuntu": {nodeclass.NodeClass{ImageFamily: "Ubuntu"},
				[]string{"2004gen2fipscontainerd", "2004fipscontainerd"}},
			"Ubuntu with trusted launch": {nodeclass.NodeClass{ImageFamily: "Ubuntu", VTPM: true}, []string{"2204gen2fipsTLcontainerd"}},
			"Ubuntu2204 with trusted launch": {nodeclass.NodeClass{ImageFamily: "Ubuntu2204", SecureBoot: true},
				[]string{"2204gen2fipsTLcontainerd"}},
			"Ubuntu2204 without it":          {nodeclass.NodeClass{ImageFamily: "Ubuntu2204"}, nil},
			"Ubuntu2404":                     {nodeclass.NodeClass{ImageFamily: "Ubuntu2404"}, nil},
			"AzureLinux with trusted launch": {nodeclass.NodeClass{ImageFamily: "AzureLinux", VTPM: true}, nil},
			"AzureLinux of an old Kubernetes": {nodeclass.NodeClass{ImageFamily: "AzureLinux", KubernetesVersion: "1.31.0"},
				[]string{"V2gen2fips", "V2fips"}},
		} {
			class := c.class
			class.FIPS = true
			version := class.KubernetesVersion
			if version == "" {
				version = "1.35.1"
			}
			got, err := w.provider.ResolveImages(t.Context(), &class, version)
			if c.want == nil {
				if !errors.Is(err, image.ErrNotFound) || !strings.Contains(err.Error(), "FIPS images are of family Ubuntu") {
					t.Errorf("%s: %v, %v", name, got, err)
				}
				continue
			}
			var definitions []string
			for _, i := range got {
				definitions = append(definitions, i.Definition)
				if !strings.HasPrefix(i.ID, "/subscriptions/"+galleries+"/resourceGroups/AKS-") || !strings.HasSuffix(i.ID, "/versions/202606.09.0") {
					t.Errorf("%s: image %s", name, i.ID)
				}
			}
			if err != nil || !slices.Equal(definitions, c.want) {
				t.Errorf("%s: %v, %v, want %v", name, definitions, err, c.want)
			}
		}
	})
}

func TestSharedGalleryImageNewestOrPinnedVersion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Server.PublishImages("202606.09.10")
		w.Server.PublishImages("202606.09.9")
		w.useSharedGalleries(t)
		for pinned, want := range map[string]string{"": "202606.09.10", "202606.02.0": "202606.02.0"} {
			class := nodeclass.NodeClass{ImageFamily: "Ubuntu", ImageVersion: pinned}
			got, err := w.provider.ResolveImages(t.Context(), &class, "1.35.1")
			if err != nil || versionOf(got[0].ID) != want {
				t.Errorf("pinned to %q: %v, %v", pinned, got, err)
			}
		}
	})
}

func TestAKSMachineOfSharedImageHasNoDrift(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.config.SIGSubscriptionID = galleries
		w.restartAs(t, config.ModeAKSMachines)
		images, err := w.provider.ResolveImages(t.Context(), w.class, w.class.KubernetesVersion)
		if err != nil {
			t.Fatal(err)
		}
		w.class.Images = images
		m, err := w.provider.Launch(t.Context(), w.order("general-abc12", sizes("Standard_D4s_v5"), onDemand()))
		if err != nil || m.ImageID != images[0].ID {
			t.Errorf("the machine's image is %s, %v, want %s", m.ImageID, err, images[0].ID)
		}
		w.deleteAll(t)
		w.noLeaks(t)
	}, armtest.Realistic)
}

func TestTrap25NewImageFoundWithinOneHour(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, *world){
		"community galleries": func(*testing.T, *world) {},
		"shared galleries":    func(t *testing.T, w *world) { w.useSharedGalleries(t) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				prepare(t, w)
				resolve := func() string {
					t.Helper()
					got, err := w.provider.ResolveImages(t.Context(), w.class, w.class.KubernetesVersion)
					if err != nil {
						t.Fatal(err)
					}
					return versionOf(got[0].ID)
				}
				before := resolve()
				w.Server.PublishImages("202606.16.0")
				if got := resolve(); got != before {
					t.Errorf("asked again at once, the galleries were read: %s", got)
				}
				time.Sleep(time.Hour)
				if got := resolve(); got != "202606.16.0" {
					t.Errorf("an hour later the newest image is still %s", got)
				}
			})
		})
	}
}
