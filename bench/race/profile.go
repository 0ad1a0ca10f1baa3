package race

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/nodeautoprovision/nap/bench"
)

// purpose is what a controller takes processor time for.
type purpose struct {
	name string
	// frames are beginnings of functions; a sample whose stack has one is of the purpose.
	frames []string
}

// purposes are asked in order; the first that fits counts. What calls another purpose's
// code, for instance a plan that a controller asks for, stands after it.
func purposes() []purpose {
	const nap, client = "github.com/nodeautoprovision/nap/internal/", "k8s.io/client-go/"
	return []purpose{
		{"collecting garbage", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"}},
		{"planning", []string{nap + "planner/"}},
		{"stating the problem", []string{nap + "fleet.", nap + "fleet/", nap + "convert.", nap + "convert/"}},
		{"reading and writing Azure", []string{"github.com/Azure/"}},
		{"requests to the API server", []string{client + "rest.(*Request)"}},
		{"watching", []string{
			client + "tools/cache.", client + "rest/watch.", "k8s.io/apimachinery/pkg/watch.", "sigs.k8s.io/controller-runtime/pkg/cache",
		}},
		{"Karpenter's code", []string{"sigs.k8s.io/karpenter/"}},
		{"nap's controllers", []string{nap}},
		{"connections", []string{"net/http.", "crypto/tls.", "golang.org/x/net/http2.", "internal/poll."}},
	}
}

// otherwise is the purpose of what fits none: mostly Go's scheduler.
const otherwise = "the rest"

// Shares says for how many seconds of processor time a profile has each purpose.
func Shares(path string) (map[string]float64, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p, err := profile.Parse(file)
	if err != nil {
		return nil, fmt.Errorf("read the profile %s: %w", path, err)
	}
	value := slices.IndexFunc(p.SampleType, func(v *profile.ValueType) bool { return v.Type == "cpu" && v.Unit == "nanoseconds" })
	if value < 0 {
		return nil, fmt.Errorf("%s is no profile of processor time", path)
	}
	out := map[string]float64{}
	for _, s := range p.Sample {
		out[purposeOf(s)] += float64(s.Value[value]) / 1e9
	}
	return out, nil
}

func purposeOf(s *profile.Sample) string {
	for _, p := range purposes() {
		for _, place := range s.Location {
			for _, line := range place.Line {
				if slices.ContainsFunc(p.frames, func(f string) bool { return strings.HasPrefix(line.Function.Name, f) }) {
					return p.name
				}
			}
		}
	}
	return otherwise
}

// WriteProfiles writes a row per purpose and a column per course and engine, with the
// median over turns.
func WriteProfiles(w io.Writer, results []*Result) error {
	head := []string{"processor time for"}
	var columns [][]*Result
	for _, r := range results {
		if r.Profile == nil {
			continue
		}
		i := slices.IndexFunc(columns, func(c []*Result) bool { return c[0].Course == r.Course && c[0].Engine == r.Engine })
		if i < 0 {
			columns = append(columns, nil)
			head = append(head, r.Course+", "+r.Engine)
			i = len(columns) - 1
		}
		columns[i] = append(columns[i], r)
	}
	if columns == nil {
		return nil
	}
	var lines [][]string
	for _, p := range append(purposes(), purpose{name: otherwise}) {
		line := []string{p.name}
		for _, turns := range columns {
			line = append(line, fmt.Sprintf("%.2f s", medianOf(turns, func(r *Result) float64 { return r.Profile[p.name] })))
		}
		lines = append(lines, line)
	}
	return bench.Markdown(w, head, lines)
}

// medianOf is the median, of an even number the greater one in the middle.
func medianOf(turns []*Result, value func(*Result) float64) float64 {
	var values []float64
	for _, r := range turns {
		values = append(values, value(r))
	}
	slices.SortFunc(values, cmp.Compare[float64])
	return values[len(values)/2]
}
