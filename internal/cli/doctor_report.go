package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// doctorReport is what nap doctor prints as JSON. Its fields are a promise: docs/plan-json.md
// documents them.
type doctorReport struct {
	Cluster           string                 `json:"cluster"`
	ResourceGroup     string                 `json:"resourceGroup"`
	Region            string                 `json:"region"`
	KubernetesVersion string                 `json:"kubernetesVersion"`
	Verdict           prerequisites.Verdict  `json:"verdict"`
	Results           []prerequisites.Result `json:"results"`
	Counts            map[string]int         `json:"counts"`
}

func newDoctorReport(f *prerequisites.Facts, results []prerequisites.Result) *doctorReport {
	r := &doctorReport{
		Cluster: f.Cluster.Name, ResourceGroup: f.Cluster.ResourceGroup, Region: f.Cluster.Location,
		KubernetesVersion: f.Cluster.State.KubernetesVersion, Verdict: prerequisites.Worst(results), Results: results,
		Counts: map[string]int{},
	}
	for _, x := range results {
		r.Counts[string(x.Verdict)]++
	}
	return r
}

// write writes the report for people: every finding with what to do, then what could not
// be read.
func (r *doctorReport) write(out io.Writer, all bool) error {
	fmt.Fprintf(out, "AKS cluster %s of resource group %s (%s, Kubernetes %s): %d checks%s\n",
		r.Cluster, r.ResourceGroup, r.Region, r.KubernetesVersion, len(r.Results), r.summary())
	for _, x := range r.Results {
		if x.Verdict != prerequisites.Failed && x.Verdict != prerequisites.Warning {
			continue
		}
		fmt.Fprintf(out, "\n%d %s: %s: %s\n", x.Number, x.Name, x.Verdict, x.Finding)
		fmt.Fprintf(out, "   read: %s\n   why:  %s\n", x.Read, x.Why)
		if x.Blocks {
			fmt.Fprintln(out, "   nap buys nothing while this is so.")
		}
		if x.Fix != "" {
			fmt.Fprintf(out, "   fix:  %s\n", x.Fix)
		}
	}
	r.writeUnknown(out)
	if !all {
		return nil
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "#\tCHECK\tVERDICT\tREAD")
	for _, x := range r.Results {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\n", x.Number, x.Name, x.Verdict, x.Read)
	}
	return w.Flush()
}

// summary counts the verdicts.
func (r *doctorReport) summary() string {
	if r.Verdict == prerequisites.OK {
		return ", all is well"
	}
	var parts []string
	for _, v := range []prerequisites.Verdict{prerequisites.Failed, prerequisites.Warning, prerequisites.Unknown, prerequisites.OK} {
		if n := r.Counts[string(v)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	return ": " + strings.Join(parts, ", ")
}

// writeUnknown lists what could not be read, each reason once.
func (r *doctorReport) writeUnknown(out io.Writer) {
	checks := map[string][]string{}
	var order []string
	for _, x := range r.Results {
		if x.Verdict != prerequisites.Unknown {
			continue
		}
		why := x.Read + ": " + x.Finding
		if checks[why] == nil {
			order = append(order, why)
		}
		checks[why] = append(checks[why], x.Name)
	}
	for i, why := range order {
		if i == 0 {
			fmt.Fprintln(out, "\nnot known, because it could not be read:")
		}
		fmt.Fprintf(out, "   %s\n      checks: %s\n", why, strings.Join(checks[why], ", "))
	}
}
