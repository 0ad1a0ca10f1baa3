// Command replay plans generated clusters and prints, a line each, the cluster
// that the plan makes, as a Kubernetes List in JSON, for lab/judge to judge.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/nodeautoprovision/nap/bench"
	"github.com/nodeautoprovision/nap/bench/differential"
	"github.com/nodeautoprovision/nap/bench/replay"
	"github.com/nodeautoprovision/nap/bench/workload"
	"github.com/nodeautoprovision/nap/internal/model"
)

// effort is how much work goes into a plan; counted in steps, so that a seed
// always gives the same plan.
const effort = 20 * time.Millisecond

func main() {
	first := flag.Uint64("first", 0, "the seed of the first cluster")
	count := flag.Uint64("count", 100, "how many clusters to plan")
	family := flag.String("family", "usual",
		"which clusters to draw: usual, wide (everything that Karpenter understands) or large (some hundred pods each)")
	flag.Parse()
	generate, ok := map[string]func(uint64) (*workload.Input, error){
		"usual": differential.Generate, "wide": differential.GenerateWide, "large": differential.GenerateLarge,
	}[*family]
	if !ok {
		fmt.Fprintf(os.Stderr, "replay: -family %q: must be usual, wide or large\n", *family)
		os.Exit(2)
	}
	out := json.NewEncoder(os.Stdout)
	for seed := *first; seed < *first+*count; seed++ {
		in, err := generate(seed)
		var list *metav1.List
		if err == nil {
			list, err = plan(context.Background(), in)
		}
		if err == nil {
			err = out.Encode(list)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "replay: seed %d: %v\n", seed, err)
			os.Exit(1)
		}
	}
}

func plan(ctx context.Context, in *workload.Input) (*metav1.List, error) {
	nap := bench.NewNap(in, model.Policy{})
	stated, err := nap.State(ctx)
	if err != nil {
		return nil, err
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	for _, o := range replay.World(in, stated, nap.SolveSteps(stated, effort)) {
		kind, err := apiutil.GVKForObject(o, scheme.Scheme)
		if err != nil {
			return nil, err
		}
		o.GetObjectKind().SetGroupVersionKind(kind)
		list.Items = append(list.Items, runtime.RawExtension{Object: o})
	}
	return list, nil
}
