package scenario

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// pollEvery is how often a wait looks at the local mirror, which costs nothing.
const pollEvery = 50 * time.Millisecond

// managed selects the nodes that nap made.
const managed = "karpenter.sh/nodepool"

// resource finds the client for objects of a kind as people write it.
func (r *runner) resource(kind string) (dynamic.ResourceInterface, error) {
	disco, err := discovery.NewDiscoveryClientForConfig(r.Kubernetes)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco)), disco, nil)
	gvr, err := mapper.ResourceFor(schema.GroupVersionResource{Resource: strings.ToLower(kind)})
	if err != nil {
		return nil, fmt.Errorf("kind %q: %w", kind, err)
	}
	gvk, err := mapper.KindFor(gvr)
	if err != nil {
		return nil, fmt.Errorf("kind %q: %w", kind, err)
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("kind %q: %w", kind, err)
	}
	client, err := dynamic.NewForConfig(r.Kubernetes)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == "namespace" {
		return client.Resource(gvr).Namespace(metav1.NamespaceDefault), nil
	}
	return client.Resource(gvr), nil
}

func (r *runner) delete(ctx context.Context, kind, name string) error {
	objects, err := r.resource(kind)
	if err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	return objects.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
}

func (r *runner) scale(ctx context.Context, kind, name, replicas string) error {
	objects, err := r.resource(kind)
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%s}}`, replicas)
	_, err = objects.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}, "scale")
	return err
}

func (r *runner) wait(ctx context.Context, args []string) error {
	w, err := parseWait(args)
	if err != nil {
		return err
	}
	look, err := r.lookout(ctx, w)
	if err != nil {
		return err
	}
	w.within = r.patient(w.within)
	ctx, cancel := context.WithTimeout(ctx, w.within)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var since time.Time
	for {
		have, err := look()
		if err != nil {
			return err
		}
		switch {
		case !reached(have, w.want):
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		if !since.IsZero() && time.Since(since) >= w.hold {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("after %s there are %s (%w)", w.within, numbers(have), context.Cause(ctx))
		}
	}
}

// lookout returns the function that counts what a wait waits for.
func (r *runner) lookout(ctx context.Context, w wait) (func() (map[string]int, error), error) {
	switch w.what {
	case "machines":
		if _, accepted := w.want["accepted"]; accepted {
			return func() (map[string]int, error) {
				n, err := r.Azure.Accepted(ctx)
				return map[string]int{"accepted": n}, err
			}, nil
		}
		return func() (map[string]int, error) {
			machines, err := r.Azure.Machines(ctx)
			n := 0
			for _, m := range machines {
				if m.matches(w.filters) {
					n++
				}
			}
			return map[string]int{"count": n}, err
		}, nil
	case "claims":
		return func() (map[string]int, error) { return map[string]int{"count": len(r.world.allClaims())}, nil }, nil
	case "boot-failures":
		return func() (map[string]int, error) { return map[string]int{"told": r.world.boots.count()}, nil }, nil
	case "moves":
		return func() (map[string]int, error) { return map[string]int{"underway": r.world.underWay()}, nil }, nil
	}
	text := w.selector
	if text == "" && w.what == "nodes" {
		text = managed
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("selector %q: %w", text, err)
	}
	if w.what == "nodes" {
		return func() (map[string]int, error) {
			return map[string]int{"ready": r.world.countNodes(selector, w.filters)}, nil
		}, nil
	}
	return func() (map[string]int, error) {
		c := r.world.countPods(selector)
		// A pod that is on its way out still occupies its machine: "running=2"
		// is true only when nothing else is left.
		return map[string]int{"running": c.running + c.leaving, "pending": c.pending, "resizing": c.resizing}, nil
	}, nil
}

func (m Machine) matches(filters map[string]string) bool {
	of := map[string]string{"size": m.Size, "zone": m.Zone, "priority": m.Priority, "trouble": "no"}
	if m.Trouble != "" {
		of["trouble"] = "yes"
	}
	for key, want := range filters {
		if of[key] != want {
			return false
		}
	}
	return true
}

func reached(have, want map[string]int) bool {
	for name, n := range want {
		if have[name] != n {
			return false
		}
	}
	return true
}

func numbers(have map[string]int) string {
	parts := make([]string, 0, len(have))
	for _, name := range slices.Sorted(maps.Keys(have)) {
		parts = append(parts, fmt.Sprintf("%d %s", have[name], name))
	}
	return strings.Join(parts, ", ")
}

func (r *runner) fault(ctx context.Context, args []string) error {
	if args[0] == "clear" {
		r.story.line("fault", "all faults removed")
		return r.Azure.ClearFaults(ctx)
	}
	params := map[string]string{}
	for _, arg := range args[1:] {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=VALUE", arg)
		}
		params[key] = value
	}
	id, err := r.Azure.AddFault(ctx, args[0], params)
	if err != nil {
		return err
	}
	r.story.line("fault", fmt.Sprintf("%s (%s)", strings.Join(args, " "), id))
	return nil
}

func (r *runner) expect(ctx context.Context, args []string) error {
	switch what, rest := args[0], args[1:]; {
	case what == "leaks" && rest[0] == "none":
		return r.expectNoLeaks(ctx)
	case what == "bought" && strings.HasPrefix(rest[0], "<="):
		return r.expectBought(ctx, strings.TrimPrefix(rest[0], "<="))
	case what == "bought-twice" && rest[0] == "none":
		return r.expectBoughtOnce(ctx)
	case what == "boot-failures":
		return r.expectBootFailures(ctx, rest)
	case what == "kept" || what == "disrupted-at-once":
		return r.expectKept(what, rest)
	case what == "condition":
		return r.expectCondition(ctx, rest)
	case what == "cost" && strings.HasPrefix(rest[0], "<=$"):
		return r.expectCost(ctx, strings.TrimPrefix(rest[0], "<=$"), rest[1:])
	case what == "pods" && strings.HasPrefix(rest[len(rest)-1], "waited<="):
		return r.expectWaited(rest)
	case what == "pods" && rest[len(rest)-1] == "unmoved":
		return r.expectUnmoved(rest[:len(rest)-1])
	case what == "pods":
		return r.expectPodsOn(ctx, rest)
	}
	return fmt.Errorf("allowed: leaks none; bought <=N; bought-twice none; boot-failures told<=DURATION [TEXT]; " +
		"condition KIND NAME TYPE=STATUS [TEXT] [within DURATION]; cost <=$N [within DURATION]; " +
		"disrupted-at-once <=N; kept budgets; kept pods; pods [SELECTOR] on K=V [within DURATION]; pods [SELECTOR] unmoved; " +
		"pods [SELECTOR] waited<=DURATION")
}

// expectBought compares the number of machines that were ever bought.
func (r *runner) expectBought(ctx context.Context, text string) error {
	most, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%q is not a number", text)
	}
	purchases, err := r.Azure.Purchases(ctx)
	if err == nil && len(purchases) > most {
		err = fmt.Errorf("%d machines were bought", len(purchases))
	}
	return err
}

// expectCost compares the price of all machines per hour, now or within some time.
func (r *runner) expectCost(ctx context.Context, text string, more []string) error {
	most, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("%q is not a number", text)
	}
	within, err := parseWithin(more)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, r.patient(within))
	defer cancel()
	for {
		cost, err := r.cost(context.WithoutCancel(ctx))
		if err != nil || cost <= most {
			return err
		}
		select {
		case <-time.After(costEvery):
		case <-ctx.Done():
			return fmt.Errorf("the machines cost $%.4f per hour", cost)
		}
	}
}

// parseWithin reads the words "within DURATION"; no words are no time.
func parseWithin(words []string) (time.Duration, error) {
	if len(words) == 0 {
		return 0, nil
	}
	if len(words) != 2 || words[0] != "within" {
		return 0, fmt.Errorf("do not understand %q, allowed: within DURATION", strings.Join(words, " "))
	}
	within, err := time.ParseDuration(words[1])
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration", words[1])
	}
	return within, nil
}

// costEvery is how often the price of all machines is asked for.
const costEvery = 500 * time.Millisecond

func (r *runner) cost(ctx context.Context) (float64, error) {
	machines, err := r.Azure.Machines(ctx)
	cost := 0.0
	for _, m := range machines {
		cost += m.DollarsPerHour
	}
	return cost, err
}

// expectWaited says whether pods have found a node within some time of their
// creation. Kubernetes keeps both moments in whole seconds.
func (r *runner) expectWaited(args []string) error {
	most, err := time.ParseDuration(strings.TrimPrefix(args[len(args)-1], "waited<="))
	if err != nil {
		return fmt.Errorf("%q is not a duration", args[len(args)-1])
	}
	selector, err := labels.Parse(strings.Join(args[:len(args)-1], ""))
	if err != nil {
		return err
	}
	pods, err := r.world.pods.Pods(metav1.NamespaceDefault).List(selector)
	if err != nil {
		return err
	}
	for _, p := range pods {
		for _, c := range p.Status.Conditions {
			if c.Type != corev1.PodScheduled {
				continue
			}
			until := c.LastTransitionTime.Time
			if c.Status != corev1.ConditionTrue {
				until = time.Now()
			}
			if waited := until.Sub(p.CreationTimestamp.Time); waited > r.patient(most) {
				return fmt.Errorf("pod %s waited %s for a node", p.Name, waited.Round(time.Second))
			}
		}
	}
	return nil
}

// leakPatience is how long what is being deleted may take to be gone.
const leakPatience = 30 * time.Second

func (r *runner) expectNoLeaks(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.patient(leakPatience))
	defer cancel()
	for {
		leaks, err := r.leaks(ctx)
		if err != nil || len(leaks) == 0 {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return fmt.Errorf("left behind: %s", strings.Join(leaks, ", "))
		}
	}
}

// leaks lists machines that no claim accounts for, and what no machine needs.
func (r *runner) leaks(ctx context.Context) ([]string, error) {
	var claims []string
	for _, c := range r.world.allClaims() {
		claims = append(claims, c.GetName())
	}
	return r.Azure.Leaks(ctx, claims)
}

func (r *runner) expectBoughtOnce(ctx context.Context) error {
	purchases, err := r.Azure.Purchases(ctx)
	if err != nil {
		return err
	}
	times := map[string]int{}
	for _, p := range purchases {
		times[p.Machine.Name]++
	}
	for _, name := range slices.Sorted(maps.Keys(times)) {
		if times[name] > 1 {
			return fmt.Errorf("%s was bought %d times", name, times[name])
		}
	}
	return nil
}

func (r *runner) expectPodsOn(ctx context.Context, args []string) error {
	at := slices.Index(args, "on")
	if at < 0 || at+2 > len(args) || at > 1 {
		return fmt.Errorf("say: expect pods [SELECTOR] on LABEL=VALUE [within DURATION]")
	}
	within, err := parseWithin(args[at+2:])
	if err != nil {
		return err
	}
	selector, err := labels.Parse(strings.Join(args[:at], ""))
	if err != nil {
		return err
	}
	key, value, _ := strings.Cut(args[at+1], "=")
	ctx, cancel := context.WithTimeout(ctx, r.patient(within))
	defer cancel()
	for {
		err := r.podsOn(selector, key, value)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// podsOn says which pod has no node with the label, if any.
func (r *runner) podsOn(selector labels.Selector, key, value string) error {
	pods, err := r.world.pods.Pods(metav1.NamespaceDefault).List(selector)
	if err != nil {
		return err
	}
	if len(pods) == 0 {
		return fmt.Errorf("no such pods")
	}
	for _, p := range pods {
		node, err := r.world.nodes.Get(p.Spec.NodeName)
		if err != nil {
			return fmt.Errorf("pod %s has no node: %w", p.Name, err)
		}
		if node.Labels[key] != value {
			return fmt.Errorf("pod %s runs on %s, where %s is %q", p.Name, node.Name, key, node.Labels[key])
		}
	}
	return nil
}
