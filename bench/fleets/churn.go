package fleets

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/api/v1beta1"
	"github.com/nodeautoprovision/nap/bench/beside"
	"github.com/nodeautoprovision/nap/internal/fleet"
	"github.com/nodeautoprovision/nap/internal/karpenterengine"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/planner"
	"github.com/nodeautoprovision/nap/internal/planner/consolidate"
)

// Churn is a fleet under hours of change: deployments that grow and shrink at
// random and with the time of day, machines that the cloud takes back, prices that
// move. A step is a minute.
type Churn struct {
	Fleet
	Minutes int
	Seed    uint64
	// audit looks at every answer of nap, where a test wants to.
	audit func(*model.DisruptionProblem, *model.Commands) error
}

// Churns lists the lives of the benchmark.
func Churns() []Churn {
	return []Churn{{
		Fleet: Fleet{
			Name: "churn-40", Nodes: 40, Guarded: true, About: "two hours: deployments with PodDisruptionBudgets, a third of " +
				"them spread over zones, that grow and shrink at random and with the time of day, machines taken back, prices that move",
		},
		Minutes: 120, Seed: 1,
	}}
}

// LivedRow is the outcome of one life; Karpenter is nil when it was left out.
type LivedRow struct {
	Churn
	Nap, Karpenter *Lived
}

// RunChurn lets the engines live through the same hours.
func RunChurn(ctx context.Context, f Churn, s Settings) (*LivedRow, error) {
	row := &LivedRow{Churn: f}
	var err error
	if row.Nap, err = Live(ctx, f, false); err != nil {
		return nil, fmt.Errorf("%s: nap: %w", f.Name, err)
	}
	if s.SkipUpstream {
		return row, nil
	}
	if row.Karpenter, err = Live(ctx, f, true); err != nil {
		return nil, fmt.Errorf("%s: Karpenter: %w", f.Name, err)
	}
	return row, nil
}

// Lived is what an engine made of such hours.
type Lived struct {
	// Cost is what was paid, dollars; Hindsight what no fleet for the pods of every
	// moment can undercut.
	Cost, Hindsight float64
	// Evictions counts pods moved by consolidation, TakenBack those that lost their
	// machine to the cloud.
	Evictions, TakenBack int
	Bought, Removed      int
	// Deciding is the time that consolidation took to decide.
	Deciding time.Duration
}

// The engine of consolidation in a life. Pods that wait are planned by nap's
// planner in either, so that only consolidation differs.
type consolidator interface {
	// minute decides and makes what it decided, in what one minute leaves time for.
	minute(ctx context.Context, now time.Time) (Figures, error)
}

// quietFor is the pool's consolidateAfter.
const quietFor = 5 * time.Minute

// Live lets an engine live through the hours.
func Live(ctx context.Context, f Churn, karpenterInstead bool) (*Lived, error) {
	c, err := Draw(f.Fleet)
	if err != nil {
		return nil, err
	}
	c.Types = ownPrices(c.Types)
	np := c.Fixed[0].(*v1.NodePool)
	np.Spec.Disruption.ConsolidateAfter = v1.MustParseNillableDuration(quietFor.String())
	l := &life{Cluster: c, churn: f, users: rand.New(rand.NewPCG(f.Seed, 1)), clouds: rand.New(rand.NewPCG(f.Seed, 2)),
		market: rand.New(rand.NewPCG(f.Seed, 3)), buyer: newNap(c, model.DefaultConsolidationTerms()), lived: &Lived{}}
	if l.engine, err = l.consolidator(ctx, karpenterInstead); err != nil {
		return nil, err
	}
	l.remember()
	for minute := range f.Minutes {
		if err := l.minute(ctx, minute); err != nil {
			return nil, fmt.Errorf("minute %d: %w", minute, err)
		}
	}
	return l.lived, nil
}

// ownPrices copies instance types, so that their prices can be changed.
func ownPrices(list []*cloudprovider.InstanceType) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	for _, t := range list {
		own := &cloudprovider.InstanceType{Name: t.Name, Requirements: t.Requirements, Capacity: t.Capacity, Overhead: t.Overhead}
		for _, o := range t.Offerings {
			offering := *o
			own.Offerings = append(own.Offerings, &offering)
		}
		out = append(out, own)
	}
	return out
}

type life struct {
	*Cluster
	churn Churn
	// What users, the cloud and the market do is drawn apart, so that every engine
	// sees the same demand.
	users, clouds, market *rand.Rand
	buyer                 *nap
	engine                consolidator
	lived                 *Lived
	apps                  []*app
	serial                int
}

// app is a deployment: a pod to copy, and how many there were at first.
type app struct {
	template *corev1.Pod
	usual    int
	// daily apps follow the time of day.
	daily bool
	pods  []types.NamespacedName
}

func (l *life) consolidator(ctx context.Context, karpenterInstead bool) (consolidator, error) {
	if !karpenterInstead {
		return &napMinutes{l.buyer, l.churn.audit}, nil
	}
	k, err := newKarpenter(ctx, l.Cluster)
	if err != nil {
		return nil, err
	}
	return &karpenterMinutes{k}, nil
}

// remember groups the pods of the beginning by app.
func (l *life) remember() {
	byApp := map[string]*app{}
	var keys []types.NamespacedName
	for key := range l.pods {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return compare(a.String(), b.String()) })
	for _, key := range keys {
		name := appOf(l.pods[key])
		if byApp[name] == nil {
			byApp[name] = &app{template: l.pods[key].DeepCopy()}
		}
		byApp[name].pods = append(byApp[name].pods, key)
	}
	for i, name := range sorted(byApp) {
		a := byApp[name]
		a.usual, a.daily = len(a.pods), i%2 == 0
		l.apps = append(l.apps, a)
	}
}

func (l *life) minute(ctx context.Context, minute int) error {
	now := quietSince.Add(time.Duration(minute+1) * time.Minute)
	l.now = metav1.NewTime(now)
	l.buyer.now = now
	if minute%60 == 59 {
		l.movePrices()
	}
	l.takeBack()
	l.scale(minute)
	if err := l.provision(ctx); err != nil {
		return err
	}
	if err := l.check(); err != nil {
		return fmt.Errorf("after provisioning: %w", err)
	}
	f, err := l.engine.minute(ctx, now)
	if err != nil {
		return err
	}
	l.lived.Evictions += f.Evictions
	l.lived.Removed += f.Removed
	l.lived.Deciding += f.All
	if err := l.check(); err != nil {
		return err
	}
	return l.pay(ctx)
}

// pay adds up a minute.
func (l *life) pay(ctx context.Context) error {
	bound, err := l.needed(ctx)
	if err != nil {
		return err
	}
	if cost := l.Cost(); bound > cost+1e-6 {
		return fmt.Errorf("the bound of $%.4f/h is above the fleet's $%.4f/h", bound, cost)
	}
	l.lived.Cost += l.Cost() / 60
	l.lived.Hindsight += bound / 60
	return nil
}

// needed is a floor under the price of any fleet for the pods of the moment, whatever
// the fleet is now: nodes that have no quiet yet could be others as well.
func (l *life) needed(ctx context.Context) (float64, error) {
	in, err := l.buyer.store.Snapshot().Fleet(ctx, l.buyer.catalog, fleet.DisruptionOptions{
		Options: fleet.Options{Now: l.now.Time, Policy: model.Policy{Budget: 20 * time.Millisecond}}, Terms: l.buyer.terms,
	})
	if err != nil {
		return 0, err
	}
	for i := range in.Fleet.Policies {
		in.Fleet.Policies[i].After = 0
	}
	for i := range in.Fleet.Budgets {
		in.Fleet.Budgets[i].Allowed, in.Fleet.Budgets[i].Blocking = math.MaxInt32, false
	}
	return consolidate.LowerBound(in.Fleet).Dollars(), nil
}

// movePrices makes a tenth of the sizes up to a fifth cheaper or dearer.
func (l *life) movePrices() {
	for _, t := range l.Types {
		if l.market.IntN(10) > 0 {
			continue
		}
		factor := 0.8 + 0.4*l.market.Float64()
		for _, o := range t.Offerings {
			o.Price *= factor
		}
	}
	l.buyer.catalog = beside.NewCatalog(l.Types)
	for _, m := range l.nodes {
		i := slices.IndexFunc(l.Types, func(t *cloudprovider.InstanceType) bool {
			return t.Name == m.node.Labels[corev1.LabelInstanceTypeStable]
		})
		price, _ := l.Types[i].OfferingPrice(m.node.Labels[corev1.LabelTopologyZone], m.node.Labels[v1.CapacityTypeLabelKey])
		m.price = price
	}
}

// takeBack lets the cloud take a machine now and then; its pods wait.
func (l *life) takeBack() {
	const perMinute = 0.002
	for _, name := range sorted(l.nodes) {
		if l.clouds.Float64() >= perMinute {
			continue
		}
		for key, p := range l.pods {
			if p.Spec.NodeName == name {
				l.lived.TakenBack++
				l.wait(key)
			}
		}
		l.giveBack(name)
	}
}

// wait makes a pod one that waits.
func (l *life) wait(key types.NamespacedName) {
	p := l.pods[key]
	p.Spec.NodeName = ""
	p.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
	}}
	l.put(p)
}

// scale lets deployments grow and shrink: in three of a hundred minutes at random,
// and half of them with the day, which is four hours long.
func (l *life) scale(minute int) {
	for _, a := range l.apps {
		want := len(a.pods)
		switch {
		case a.daily && minute%10 == 0:
			want = int(math.Round(float64(a.usual) * (1 + 0.6*math.Sin(2*math.Pi*float64(minute)/240))))
		case !a.daily && l.users.Float64() < 0.03:
			want = int(math.Round(float64(a.usual) * 2 * l.users.Float64()))
		}
		for len(a.pods) > max(0, want) {
			i := l.users.IntN(len(a.pods))
			l.end(a.pods[i])
			a.pods = slices.Delete(a.pods, i, i+1)
		}
		for len(a.pods) < want {
			a.pods = append(a.pods, l.start(a))
		}
	}
}

func (l *life) end(key types.NamespacedName) {
	p := l.pods[key]
	delete(l.pods, key)
	l.drop(p)
	l.touch(p.Spec.NodeName)
}

func (l *life) start(a *app) types.NamespacedName {
	p := a.template.DeepCopy()
	l.serial++
	p.Name = fmt.Sprintf("%s-%05d", appOf(p), l.serial)
	p.UID, p.ResourceVersion, p.CreationTimestamp = types.UID(p.Namespace+"/"+p.Name), "", l.now
	key := client.ObjectKeyFromObject(p)
	l.pods[key] = p
	l.wait(key)
	return key
}

// provision gives every pod that waits a place.
func (l *life) provision(ctx context.Context) error {
	in, err := l.buyer.store.Snapshot().Problem(ctx, l.buyer.catalog,
		fleet.Options{Now: l.now.Time, Policy: model.Policy{Budget: 50 * time.Millisecond}})
	if err != nil {
		return err
	}
	plan := planner.Solve(in.Problem)
	if len(plan.Unschedulable) > 0 {
		return fmt.Errorf("%d kinds of pods find no place: %s", len(plan.Unschedulable), plan.Unschedulable[0].Message)
	}
	bind := func(entries []model.ClassPods, node string) {
		for _, ref := range in.Pods(entries) {
			key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
			l.pods[key].Status = corev1.PodStatus{
				Phase: corev1.PodRunning, StartTime: &l.now, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			}
			l.place(key, node)
		}
	}
	for _, pl := range plan.Placements {
		bind(pl.Pods, in.Problem.Nodes[pl.Node].Name)
	}
	for i := range plan.NewNodes {
		n := &plan.NewNodes[i]
		t := &in.Problem.Catalogs[in.Problem.Pools[n.Pool].Catalog].InstanceTypes[n.Best().InstanceType]
		o := &t.Offerings[n.Best().Offering]
		name, err := l.buy(t.Name, o.Zone, string(o.CapacityType))
		if err != nil {
			return err
		}
		l.lived.Bought++
		bind(n.Pods, name)
	}
	return nil
}

// napMinutes asks once a minute.
type napMinutes struct {
	*nap
	audit func(*model.DisruptionProblem, *model.Commands) error
}

func (n *napMinutes) minute(ctx context.Context, now time.Time) (Figures, error) {
	n.now = now
	start := time.Now()
	in, moves, err := n.ask(ctx, 0)
	if err != nil {
		return Figures{}, err
	}
	f := Figures{All: time.Since(start), Evictions: moves.Evictions}
	if n.audit != nil {
		if err := n.audit(in.Fleet, moves); err != nil {
			return f, err
		}
	}
	before := n.Cost()
	for i := range moves.Commands {
		mv := &moves.Commands[i]
		f.Removed += len(mv.Nodes)
		first := n.made
		if err := n.make(in, mv); err != nil {
			return f, err
		}
		n.remember(in.Fleet, mv, first)
	}
	if after := n.Cost(); after > before+1e-6 {
		return f, fmt.Errorf("consolidation made the fleet dearer: $%.4f/h became $%.4f/h", before, after)
	}
	return f, nil
}

// remember writes on the machines that a move bought what it is to save, as the
// controller does, so that their pods do not move again for the same money.
func (n *nap) remember(f *model.DisruptionProblem, mv *model.Command, first int) {
	earned := mv.Saving
	for _, node := range mv.Nodes {
		earned += f.Usages[node].ExpectedSaving
	}
	for i := first + 1; i <= n.made; i++ {
		claim := n.nodes[nodeName(i)].claim
		share := earned.Dollars() * mv.New[i-first-1].Best().Price.Dollars() / total(mv.New)
		claim.Annotations = map[string]string{v1beta1.AnnotationExpectedSaving: strconv.FormatFloat(share, 'f', 6, 64)}
		n.put(claim)
	}
}

func total(machines []model.NewNode) float64 {
	sum := 0.0
	for i := range machines {
		sum += machines[i].Best().Price.Dollars()
	}
	return sum
}

// karpenterMinutes asks as often as Karpenter's validation leaves time for: four
// times a minute.
type karpenterMinutes struct{ *karpenter }

func (k *karpenterMinutes) minute(ctx context.Context, now time.Time) (Figures, error) {
	ctx = karpenterengine.Context(ctx, controller)
	k.clock.SetTime(now)
	k.consolidatable(now)
	f := Figures{}
	for range 4 {
		start := time.Now()
		commands, err := k.ask(ctx)
		f.All += time.Since(start)
		if err != nil || len(commands) == 0 {
			return f, err
		}
		for i := range commands {
			if err := k.make(&commands[i], &f); err != nil {
				return f, err
			}
		}
		k.consolidatable(now)
	}
	return f, nil
}

// consolidatable keeps the condition that says which nodes have been quiet for
// long enough, as Karpenter's own controller does.
func (k *karpenterMinutes) consolidatable(now time.Time) {
	for _, name := range sorted(k.nodes) {
		c := k.nodes[name].claim
		since := c.Status.LastPodEventTime.Time
		if c.CreationTimestamp.After(since) {
			since = c.CreationTimestamp.Time
		}
		quiet := !since.Add(quietFor).After(now)
		if is := c.StatusConditions().IsTrue(v1.ConditionTypeConsolidatable); is == quiet {
			continue
		}
		if quiet {
			c.StatusConditions().SetTrue(v1.ConditionTypeConsolidatable)
		} else {
			_ = c.StatusConditions().Clear(v1.ConditionTypeConsolidatable)
		}
		k.put(c)
	}
}
