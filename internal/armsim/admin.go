package armsim

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strconv"
)

// handleAdmin adds the admin API, which drives and watches the simulation:
//
//	GET    /admin/faults          the faults in force
//	POST   /admin/faults          add one, body a Fault; answers it with its ID
//	DELETE /admin/faults          remove all
//	DELETE /admin/faults/{id}     remove one
//	GET    /admin/audit?after=N   audit entries after a sequence number
//	GET    /admin/machines        the machines that run
//	GET    /admin/leaks           what was created and still exists
//	GET    /admin/stats           counters
//	POST   /admin/prices          {"size","spot","price"} changes a price
//	POST   /admin/images          {"version"} publishes a node image version
//
// Every call needs "Authorization: Bearer <admin token>". Errors are
// {"error": "..."}.
func (s *Server) handleAdmin(mux *http.ServeMux) {
	if s.cfg.AdminToken == "" {
		return
	}
	add := func(pattern string, h func(*http.Request) (int, any)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			want := "Bearer " + s.cfg.AdminToken
			if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(want)) != 1 {
				s.answerAdmin(w, http.StatusUnauthorized, adminError("the admin token is missing or wrong"))
				return
			}
			status, body := h(r)
			s.answerAdmin(w, status, body)
		})
	}
	add("GET /admin/faults", func(*http.Request) (int, any) { return http.StatusOK, s.Faults() })
	add("POST /admin/faults", s.adminAddFault)
	add("DELETE /admin/faults", func(*http.Request) (int, any) {
		removed := s.Faults()
		for _, f := range removed {
			_ = s.RemoveFault(f.ID) // it may have ended by itself in between, which is as good
		}
		return http.StatusOK, removed
	})
	add("DELETE /admin/faults/{id}", func(r *http.Request) (int, any) {
		if err := s.RemoveFault(r.PathValue("id")); err != nil {
			return http.StatusNotFound, adminError(err.Error())
		}
		return http.StatusOK, document{}
	})
	add("GET /admin/audit", func(r *http.Request) (int, any) {
		after, err := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
		if err != nil && r.URL.Query().Get("after") != "" {
			return http.StatusBadRequest, adminError("after is a sequence number, not " + strconv.Quote(r.URL.Query().Get("after")))
		}
		return http.StatusOK, s.Audit(after)
	})
	add("GET /admin/machines", func(*http.Request) (int, any) { return http.StatusOK, s.Machines() })
	add("GET /admin/leaks", func(*http.Request) (int, any) { return http.StatusOK, s.Leaks() })
	add("GET /admin/stats", func(*http.Request) (int, any) { return http.StatusOK, s.Stats() })
	add("POST /admin/prices", s.adminSetPrice)
	add("POST /admin/images", s.adminPublish)
}

func adminError(text string) document { return document{"error": text} }

func (s *Server) answerAdmin(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.log.Error("cannot answer an admin call", "error", err)
	}
}

// decodeStrict reads a body and refuses fields that do not exist.
func decodeStrict(r *http.Request, into any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

func (s *Server) adminAddFault(r *http.Request) (int, any) {
	var f Fault
	if err := decodeStrict(r, &f); err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	f, err := s.AddFault(f)
	if err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	return http.StatusCreated, f
}

func (s *Server) adminSetPrice(r *http.Request) (int, any) {
	var p struct {
		Size  string  `json:"size"`
		Spot  bool    `json:"spot"`
		Price float64 `json:"price"`
	}
	if err := decodeStrict(r, &p); err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	if err := s.SetPrice(p.Size, p.Spot, p.Price); err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	return http.StatusOK, p
}

func (s *Server) adminPublish(r *http.Request) (int, any) {
	var p struct {
		Version string `json:"version"`
	}
	if err := decodeStrict(r, &p); err != nil {
		return http.StatusBadRequest, adminError(err.Error())
	}
	if p.Version == "" {
		return http.StatusBadRequest, adminError("version is missing; give one as 202607.01.0")
	}
	s.PublishImages(p.Version)
	return http.StatusOK, p
}
