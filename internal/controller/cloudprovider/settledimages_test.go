package cloudprovider

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/azure/config"
)

// galleries change what the galleries answer about the versions of images.
type galleries struct {
	http.RoundTripper
	// change is given the path and the answer's body, and returns status and body. It is nil
	// where nothing changes.
	change func(path string, body []byte) (int, []byte)
}

func (g *galleries) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.RoundTripper.RoundTrip(req)
	if err != nil || g.change == nil || !strings.HasSuffix(strings.ToLower(req.URL.Path), "/versions") {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.StatusCode, body = g.change(strings.ToLower(req.URL.Path), body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// changeGalleries lets a test change what the galleries answer.
func (w *world) changeGalleries(t *testing.T) *galleries {
	t.Helper()
	g := &galleries{RoundTripper: w.HTTP.Transport}
	w.HTTP = &http.Client{Transport: g}
	w.restart(t, func(*config.Config) {})
	return g
}

// While a gallery lists no version of one definition, for a moment, its machines have not drifted,
// and the image stays the first choice.
func TestImageStaysWhileItsDefinitionIsNotListed(t *testing.T) {
	answers := map[string]struct {
		status int
		body   string
	}{
		"404":   {http.StatusNotFound, `{"error":{"code":"GalleryImageNotFound","message":"not now"}}`},
		"empty": {http.StatusOK, `{"value":[]}`},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				g := w.changeGalleries(t)
				_, fresh := w.aged(t)
				first := w.class.Status.Images[0].ID
				definition := "/images/" + strings.ToLower(strings.Split(first, "/")[4]) + "/"
				g.change = func(path string, body []byte) (int, []byte) {
					if strings.Contains(path, definition) {
						return answer.status, []byte(answer.body)
					}
					return http.StatusOK, body
				}
				time.Sleep(time.Hour) // what the galleries listed is not believed any more
				w.resolve(t)
				if got := w.class.Status.Images[0].ID; got != first {
					t.Errorf("the first choice is %s, want %s", got, first)
				}
				c := fresh()
				c.Status.ImageID = first
				w.wantDrift(t, "a machine of the newest image", c, "")
			})
		})
	}
}

// A version that its gallery has withdrawn is not kept until the maintenance window opens: no
// machine can be made of it. Machines which run with it wait for the window.
func TestWithdrawnImageIsReplacedBeforeWindow(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		begin := time.Now().Add(6 * 24 * time.Hour)
		g := w.changeGalleries(t)
		w.port.MaintenanceMap(windowFrom(between(begin, begin.Add(4*time.Hour))))
		_, fresh := w.aged(t)
		w.resolve(t)
		old := w.class.Status.Images[0].ID
		version := []byte(old[strings.LastIndex(old, "/")+1:])
		g.change = func(_ string, body []byte) (int, []byte) {
			return http.StatusOK, bytes.ReplaceAll(body, version, []byte("202701.01.0"))
		}
		time.Sleep(time.Hour)
		w.resolve(t)
		for _, i := range w.class.Status.Images {
			if !strings.HasSuffix(i.ID, "/202701.01.0") {
				t.Errorf("new machines run %s, which is gone", i.ID)
			}
		}
		c := fresh()
		c.Status.ImageID = old
		w.wantDrift(t, "a machine with the withdrawn image", c, "")
		time.Sleep(6 * 24 * time.Hour)
		w.wantDrift(t, "the same within the window", c, DriftImage)
	})
}
