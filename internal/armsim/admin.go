package armsim

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nodeautoprovision/nap/internal/armsim/arm"
)

// simulation is what the admin API drives and watches.
type simulation interface {
	AddFault(f Fault) (Fault, error)
	RemoveFault(id string) error
	Faults() []Fault
	Audit(after uint64) []AuditEntry
	Machines() []Machine
	Leaks() Inventory
	Bill() *Bill
	Stats() map[string]int64
	SetPrice(size string, spot bool, price float64) error
	PublishImages(version string)
	SetKubernetesVersion(version string)
	SetMaintenanceWindow(name string, open *bool)
}

// admin is the API under /admin/.
type admin struct {
	server simulation
	token  string // that every call must bear
	log    *slog.Logger
}

// handle adds the admin API, which drives and watches the simulation:
//
//	GET    /admin/faults          the faults in force
//	POST   /admin/faults          add one, body a Fault; answers it with its ID
//	DELETE /admin/faults          remove all
//	DELETE /admin/faults/{id}     remove one
//	GET    /admin/audit?after=N   audit entries after a sequence number
//	GET    /admin/machines        the machines that run
//	GET    /admin/leaks           what was created and still exists
//	GET    /admin/bill            what everything has cost so far
//	GET    /admin/stats           counters
//	POST   /admin/prices          {"size","spot","price"} changes a price
//	POST   /admin/images          {"version"} publishes a node image version
//	POST   /admin/kubernetes      {"version"} changes the version of the control plane
//	POST   /admin/windows         {"name","open"} sets a maintenance window; open null removes it
//
// Every call needs "Authorization: Bearer <admin token>". Errors are
// {"error": "..."}.
func (a *admin) handle(mux *http.ServeMux) {
	add := func(pattern string, h func(*http.Request) (int, any)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			want := "Bearer " + a.token
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) != 1 {
				a.answer(w, http.StatusUnauthorized, adminError("the admin token is missing or wrong"))
				return
			}
			status, body := h(r)
			a.answer(w, status, body)
		})
	}
	add("GET /admin/faults", func(*http.Request) (int, any) { return http.StatusOK, a.server.Faults() })
	add("POST /admin/faults", a.addFault)
	add("DELETE /admin/faults", func(*http.Request) (int, any) {
		removed := a.server.Faults()
		for _, f := range removed {
			_ = a.server.RemoveFault(f.ID) // it may have ended by itself in between, which is as good
		}
		return http.StatusOK, removed
	})
	add("DELETE /admin/faults/{id}", func(r *http.Request) (int, any) {
		if err := a.server.RemoveFault(r.PathValue("id")); err != nil {
			return http.StatusNotFound, adminError(err.Error())
		}
		return http.StatusOK, arm.Document{}
	})
	add("GET /admin/audit", func(r *http.Request) (int, any) {
		after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
		if err != nil && r.URL.Query().Get("after") != "" {
			return http.StatusBadRequest, adminError("after is a sequence number, not " + strconv.Quote(r.URL.Query().Get("after")))
		}
		return http.StatusOK, a.server.Audit(after)
	})
	add("GET /admin/machines", func(*http.Request) (int, any) { return http.StatusOK, a.server.Machines() })
	add("GET /admin/leaks", func(*http.Request) (int, any) { return http.StatusOK, a.server.Leaks() })
	add("GET /admin/bill", func(*http.Request) (int, any) { return http.StatusOK, a.server.Bill() })
	add("GET /admin/stats", func(*http.Request) (int, any) { return http.StatusOK, a.server.Stats() })
	add("POST /admin/prices", a.setPrice)
	add("POST /admin/images", a.publish)
	add("POST /admin/kubernetes", a.setKubernetes)
	add("POST /admin/windows", a.setWindow)
}

func adminError(text string) arm.Document { return arm.Document{"error": text} }

func (a *admin) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		a.log.Error("cannot answer an admin call", "error", err)
	}
}

// decodeStrict reads a body and refuses fields that do not exist.
func decodeStrict(r *http.Request, into any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

func (a *admin) addFault(r *http.Request) (int, any) {
	var f Fault
	if err := decodeStrict(r, &f); err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	f, err := a.server.AddFault(f)
	if err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	return http.StatusCreated, f
}

func (a *admin) setPrice(r *http.Request) (int, any) {
	var p struct {
		Size  string  `json:"size"`
		Spot  bool    `json:"spot"`
		Price float64 `json:"price"`
	}
	if err := decodeStrict(r, &p); err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	if err := a.server.SetPrice(p.Size, p.Spot, p.Price); err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	return http.StatusOK, p
}

// versionBody is what names a version.
type versionBody struct {
	Version string `json:"version"`
}

// imageVersion is how AKS names the versions of node images.
var imageVersion = regexp.MustCompile(`^\d{6}\.\d{2}\.\d+$`)

func (a *admin) publish(r *http.Request) (int, any) {
	var p versionBody
	if err := decodeStrict(r, &p); err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	if !imageVersion.MatchString(p.Version) {
		return http.StatusBadRequest, adminError(fmt.Sprintf("version %q: give one as 202607.01.0, year and month, day, number", p.Version))
	}
	a.server.PublishImages(p.Version)
	return http.StatusOK, p
}

func (a *admin) setKubernetes(r *http.Request) (int, any) {
	var p versionBody
	if err := decodeStrict(r, &p); err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	if p.Version == "" {
		return http.StatusBadRequest, adminError("version is missing; give one as 1.36.0")
	}
	a.server.SetKubernetesVersion(p.Version)
	return http.StatusOK, p
}

// windowNames are the maintenance configurations that AKS has for its nodes.
func windowNames() []string {
	return []string{"aksManagedNodeOSUpgradeSchedule", "aksManagedAutoUpgradeSchedule"}
}

func (a *admin) setWindow(r *http.Request) (int, any) {
	var p struct {
		Name string `json:"name"`
		Open *bool  `json:"open"`
	}
	if err := decodeStrict(r, &p); err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	if !slices.Contains(windowNames(), p.Name) {
		return http.StatusBadRequest, adminError(fmt.Sprintf("name %q: allowed are %s", p.Name, strings.Join(windowNames(), ", ")))
	}
	a.server.SetMaintenanceWindow(p.Name, p.Open)
	return http.StatusOK, p
}
