package armtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nodeautoprovision/nap/internal/armsim"
)

// bodyJudge looks at the bodies of requests and answers on their way. What a client
// sends and Azure would take, and whatever the simulated Azure answers, must be of the
// published types, with no field that these lack. A request that was refused is not
// judged: tests send wrong ones on purpose.
type bodyJudge struct {
	mu       sync.Mutex
	routes   []judgedRoute
	seen     map[string]int  // exchanges by route and status
	verdicts map[string]bool // what was found, each once
}

// judgedRoute is a route of the simulated Azure as requests find it.
type judgedRoute struct {
	method, path string
	pattern      *regexp.Regexp
}

// Every exchange of a route is judged until there were judgedFirst of its status, and
// one in judgedEvery afterwards: lists of a thousand machines are read every second.
const (
	judgedFirst = 16
	judgedEvery = 32
)

func newBodyJudge(server *armsim.Server) *bodyJudge {
	j := &bodyJudge{seen: map[string]int{}, verdicts: map[string]bool{}}
	for _, r := range server.Routes() {
		if r.Provider != "" {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(r.Path), `\{\}`, `[^/]+`)
			if strings.HasPrefix(r.Path, "/{}/") { // any scope
				pattern = "/.+" + strings.TrimPrefix(pattern, "/[^/]+")
			}
			pattern = "(?i)^" + pattern + "$"
			j.routes = append(j.routes, judgedRoute{r.Method, r.Path, regexp.MustCompile(pattern)})
		}
	}
	return j
}

// found lists what was found, in order.
func (j *bodyJudge) found() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []string
	for v := range j.verdicts {
		out = append(out, v)
	}
	slices.Sort(out)
	return out
}

// judge looks at one exchange; sent is the body of the request.
func (j *bodyJudge) judge(r *http.Request, sent []byte, status int, header http.Header, answer []byte) {
	i := slices.IndexFunc(j.routes, func(c judgedRoute) bool { return c.method == r.Method && c.pattern.MatchString(r.URL.Path) })
	if i < 0 {
		return // nothing of Azure's
	}
	route := j.routes[i].method + " " + j.routes[i].path
	j.mu.Lock()
	defer j.mu.Unlock()
	key := fmt.Sprint(route, status)
	j.seen[key]++
	if n := j.seen[key]; n > judgedFirst && n%judgedEvery != 0 {
		return
	}
	note := func(what string, errs []string) {
		for _, e := range errs {
			j.verdicts[fmt.Sprintf("%s, %s: %s", route, what, e)] = true
		}
	}
	types, known := bodyTypes()[route]
	if !known {
		note("bodies", []string{"bodyTypes has no published types for them"})
		return
	}
	if status < http.StatusBadRequest {
		note("request", types.request.check(sent))
		note(fmt.Sprintf("answer %d", status), types.answer.check(answer))
		if strings.HasSuffix(strings.ToLower(route), "/machines/{}") && r.Method == http.MethodPut {
			note("request", checkMachinePut(r.Header, sent))
		}
	} else if len(answer) > 0 {
		errs := errorBody.check(answer)
		if errs != nil && strings.Contains(route, "Microsoft.ContainerService") {
			errs = flatBody.check(answer)
		}
		note(fmt.Sprintf("answer %d", status), errs)
	}
	if status == http.StatusAccepted && header.Get("Azure-AsyncOperation") == "" && header.Get("Location") == "" &&
		r.Method != http.MethodGet {
		note("answer 202", []string{"neither Azure-AsyncOperation nor Location says where the operation is"})
	}
}

// exchange runs a request through a handler and has the judge look at it.
func (j *bodyJudge) exchange(r *http.Request, serve func(*http.Request) *http.Response) (*http.Response, error) {
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read the body of %s %s: %w", r.Method, r.URL.Path, err)
	}
	r.Body = io.NopCloser(bytes.NewReader(sent))
	resp := serve(r)
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer to %s %s: %w", r.Method, r.URL.Path, err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(answer))
	if r.Context().Err() == nil { // otherwise the client has gone, and was not answered
		j.judge(r, sent, resp.StatusCode, resp.Header, answer)
	}
	return resp, nil
}

// bodyType checks a body against a published type and lists what does not fit.
type bodyType interface{ check(body []byte) []string }

// absent is the type of what has none.
type absent struct{}

func (absent) check(body []byte) []string {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("has a body, %.60s", body)}
}

// model is the type that the SDK decodes a body into. The SDK drops what it does not
// know, so the check is what comes out of it again: all that went in.
type model struct {
	empty func() any // a pointer to the zero model
}

func modelOf[T any]() bodyType { return model{empty: func() any { return new(T) }} }

func (m model) check(body []byte) []string {
	if len(bytes.TrimSpace(body)) == 0 {
		return []string{"has no body"}
	}
	decoded := m.empty()
	if err := json.Unmarshal(body, decoded); err != nil {
		return []string{fmt.Sprintf("is no %T: %v", decoded, err)}
	}
	again, err := json.Marshal(decoded)
	if err != nil {
		return []string{fmt.Sprintf("cannot be encoded as %T: %v", decoded, err)}
	}
	var was, is any
	if err := json.Unmarshal(body, &was); err != nil {
		return []string{err.Error()}
	}
	if err := json.Unmarshal(again, &is); err != nil {
		return []string{err.Error()}
	}
	return lost("", was, is)
}

// strict is a type of this package whose fields are all that there are, for what the
// SDK has no model of.
type strict struct{ empty func() any }

func strictly[T any]() bodyType { return strict{func() any { return new(T) }} }

func (s strict) check(body []byte) []string {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(s.empty()); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// lost lists the paths of what one document has and the other has not, or has
// otherwise.
func lost(at string, was, is any) []string {
	switch was := was.(type) {
	case nil:
		return nil // a null says nothing
	case map[string]any:
		other, ok := is.(map[string]any)
		if !ok && len(was) > 0 {
			return []string{at + " is not published"}
		}
		var out []string
		for k, v := range was {
			if _, has := other[k]; !has && v != nil {
				out = append(out, at+"."+k+" is not published")
				continue
			}
			out = append(out, lost(at+"."+k, v, other[k])...)
		}
		return out
	case []any:
		other, _ := is.([]any)
		if len(other) != len(was) {
			return []string{fmt.Sprintf("%s has %d elements, of which the SDK keeps %d", at, len(was), len(other))}
		}
		var out []string
		for i, v := range was {
			out = append(out, lost(at+"[]", v, other[i])...)
		}
		return out
	}
	if was != is && !sameTime(was, is) {
		return []string{fmt.Sprintf("%s is %v, of which the SDK makes %v", at, was, is)}
	}
	return nil
}

// sameTime says whether two texts are the same point in time.
func sameTime(a, b any) bool {
	first, _ := a.(string)
	second, _ := b.(string)
	x, errX := time.Parse(time.RFC3339Nano, first)
	y, errY := time.Parse(time.RFC3339Nano, second)
	return errX == nil && errY == nil && x.Equal(y)
}

// cause is an error as every provider writes it.
type cause struct {
	Code           string  `json:"code"`
	Message        string  `json:"message"`
	Target         string  `json:"target"`
	Details        []cause `json:"details"`
	AdditionalInfo []any   `json:"additionalInfo"`
}

// errorBody is an error of ARM or of a provider; flatBody is one of AKS, which has no
// frame around it (Azure/karpenter-provider-azure,
// pkg/providers/azclient/aksmachinesheaderbatch/apiresponseutils.go).
var (
	errorBody = strictly[struct {
		Error cause `json:"error"`
	}]()
	flatBody = strictly[struct {
		cause
		Subcode string `json:"subcode"`
	}]()
)
