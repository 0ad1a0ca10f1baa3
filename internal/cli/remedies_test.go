package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/model"
)

// pendingCommands are what an explanation offers for a pod of Deployment shop/web for which
// nothing but the reason itself is in the way; "" for nothing.
func pendingCommands() map[model.Reason]string {
	const (
		owner    = "kubectl edit deployment web -n shop"
		pool     = "kubectl edit nodepool general"
		together = "kubectl get pods -n shop --show-labels -o wide"
	)
	return map[model.Reason]string{
		model.ReasonNoPool:            "nap get pools -f FILE",
		model.ReasonPoolPaused:        "kubectl describe nodepool general",
		model.ReasonPoolInvalid:       "nap lint -f FILE",
		model.ReasonPodInvalid:        owner,
		model.ReasonAsksTooMuch:       owner,
		model.ReasonPlanningFailed:    "kubectl get pods -A -l app.kubernetes.io/name=nap",
		model.ReasonTaint:             pool,
		model.ReasonPoolRequirement:   pool,
		model.ReasonPodRequirement:    owner,
		model.ReasonResourceClaims:    "kubectl get resourceclaims -n shop",
		model.ReasonVolumeTopology:    "kubectl get pvc -n shop",
		model.ReasonResources:         owner,
		model.ReasonDaemonOverhead:    "kubectl get daemonsets -A",
		model.ReasonMaxPods:           "kubectl edit aksnodeclass default",
		model.ReasonVolumeSlots:       owner,
		model.ReasonHostPort:          together,
		model.ReasonMaxPrice:          owner,
		model.ReasonUnavailable:       "nap retry Standard_D4s_v5",
		model.ReasonQuota:             `az vm list-usage --location eastus --query "[?name.value=='standardDSv5Family']"`,
		model.ReasonReservation:       "nap get offers --filter capacity=reserved -f FILE",
		model.ReasonLimit:             `kubectl patch nodepool general --type merge -p '{"spec":{"limits":{"cpu":"8"}}}'`,
		model.ReasonNodeLimit:         `kubectl patch nodepool general --type merge -p '{"spec":{"limits":{"nodes":"2"}}}'`,
		model.ReasonCostLimit:         "kubectl annotate nodepool general karpenter.azure.com/max-hourly-cost=0.44 --overwrite",
		model.ReasonMinValues:         pool,
		model.ReasonSpread:            together,
		model.ReasonAffinity:          together,
		model.ReasonAntiAffinity:      together,
		model.ReasonNodeLeaving:       "",
		model.ReasonNothingCompatible: "nap explain pod shop/web-0 -v -f FILE",
	}
}

// keptCommands are what an explanation offers for node general-a of NodePool general, which
// has six, with pod shop/web-0; "" for nothing.
func keptCommands() map[model.Reason]string {
	disruption := func(patch string) string {
		return `kubectl patch nodepool general --type merge -p '{"spec":{"disruption":{` + patch + `}}}'`
	}
	return map[model.Reason]string{
		model.ReasonBeingDisrupted:   "nap get moves -f FILE",
		model.ReasonNotInitialized:   "kubectl describe node general-a",
		model.ReasonMoveFailed:       "kubectl get events -A --field-selector involvedObject.name=general-a",
		model.ReasonNominated:        "kubectl get pods -A --field-selector status.phase=Pending",
		model.ReasonNodeHeld:         "nap protect general-a --undo",
		model.ReasonPodHeld:          "kubectl annotate pod web-0 -n shop karpenter.sh/do-not-disrupt-",
		model.ReasonPodBudget:        "kubectl get pdb -n shop",
		model.ReasonPodBudgets:       "kubectl get pdb -n shop",
		model.ReasonStaticPool:       "kubectl scale nodepool general --replicas=5",
		model.ReasonFrozen:           "nap thaw general",
		model.ReasonWindow:           "", // the names of its configuration are not known
		model.ReasonNeverConsolidate: disruption(`"consolidateAfter":"1m"`),
		model.ReasonNotQuiet:         disruption(`"consolidateAfter":"0s"`),
		model.ReasonPodsEnding:       "", // they end and come by themselves
		model.ReasonPolicy:           disruption(`"consolidationPolicy":"WhenEmptyOrUnderutilized"`),
		model.ReasonExpiresLater:     "",
		model.ReasonKeptForWaiting:   "nap plan --pending-only -f FILE",
		model.ReasonReceivesPods:     "nap plan --consolidate -f FILE",
		model.ReasonPoolBudget:       "kubectl get nodepool general -o jsonpath='{.spec.disruption.budgets}'",
		model.ReasonNoPlace:          "nap what-if --without-node general-a -f FILE",
		model.ReasonNoCheaper:        "",
		model.ReasonKeepsPreferences: "nap plan --consolidate --preference-policy Ignore -f FILE",
		model.ReasonPoolWeight:       "kubectl edit nodepool general",
		model.ReasonSpotToSpot:       "nap plan --consolidate --spot-to-spot -f FILE",
		model.ReasonSpotTypes:        "kubectl edit nodepool general",
		model.ReasonPriceUnknown:     "kubectl get node general-a --show-labels",
		model.ReasonDoesNotPay:       "nap plan --consolidate --eviction-price 0 -f FILE",
		model.ReasonSmallSaving:      "nap plan --consolidate --consolidation-minimum-saving 0 -f FILE",
		model.ReasonUnbalanced:       disruption(`"consolidationPolicy":"WhenEmptyOrUnderutilized"`),
	}
}

// TestEveryReasonIsExplainedWithWhatHelps: each reason has a row; its explanation begins with a
// verdict, says what the nearest miss has and what is needed, and offers just the commands of
// the row, each of which its program understands.
func TestEveryReasonIsExplainedWithWhatHelps(t *testing.T) {
	pending, kept := pendingCommands(), keptCommands()
	plan, moves := plannedForReasons(t), movedForReasons(t)
	full := map[model.Reason]*madePlan{
		model.ReasonLimit:     plannedFor(t, `limits: {cpu: 4}`, ``),
		model.ReasonNodeLimit: plannedFor(t, `limits: {nodes: 1}`, ``),
		model.ReasonCostLimit: plannedFor(t, `limits: {}`, `karpenter.azure.com/max-hourly-cost: "0.3"`),
	}
	for _, info := range model.Reasons() {
		want, ofPods := pending[info.Reason]
		wantKept, ofNodes := kept[info.Reason]
		if ofPods == ofNodes {
			t.Errorf("%s: must have one row, of pods or of nodes", info.Reason)
			continue
		}
		t.Run(string(info.Reason), func(t *testing.T) {
			var out string
			var commands []string
			if ofPods {
				made := plan
				if full[info.Reason] != nil {
					made = full[info.Reason]
				}
				out, commands = explainedPending(t, made, info)
			} else {
				want = wantKept
				out, commands = explainedKept(t, moves, info)
			}
			fitsTheScreen(t, string(info.Reason), out)
			if got := strings.Join(commands, "\n"); got != want {
				t.Errorf("offers %q, want %q", got, want)
			}
			joined := strings.Join(strings.Fields(out), " ")
			for _, part := range []string{"fix: " + info.Fix, strings.TrimSuffix(info.Meaning, ".")} {
				if !strings.Contains(joined, part) {
					t.Errorf("does not say %q:\n%s", part, out)
				}
			}
			for _, c := range commands {
				understood(t, c)
			}
			for _, phrase := range phrases(info.Meaning + " " + info.Fix) {
				if strings.HasPrefix(phrase, "nap ") {
					understandsNap(t, strings.Fields(strings.TrimRight(phrase, ".,;:"))[1:], false)
				}
			}
			delete(pending, info.Reason)
			delete(kept, info.Reason)
		})
	}
	for _, rows := range []map[model.Reason]string{pending, kept} {
		for reason := range rows {
			t.Errorf("there is no reason %s", reason)
		}
	}
}

// explained prints a story and returns it with its commands; FILE stands for the input.
func explained(t *testing.T, s *story) (string, []string) {
	t.Helper()
	var out bytes.Buffer
	c := &explainCommand{plan: planCommand{streams: command.Streams{Out: &out}}, output: "table"}
	c.plan.input.files = []string{"FILE"}
	if err := c.tell(s); err != nil {
		t.Fatal(err)
	}
	return out.String(), s.Commands
}

// plannedForReasons is a plan for Deployment shop/web, whose pod gets the one node that the
// limits of NodePool general allow.
func plannedForReasons(t *testing.T) *madePlan {
	t.Helper()
	return plannedFor(t, `limits: {cpu: 4, nodes: 1}`, `karpenter.azure.com/max-hourly-cost: "0.3"`)
}

// plannedFor is a plan for the two pods of Deployment shop/web with a specification and
// annotations of NodePool general. A machine of it holds one of them.
func plannedFor(t *testing.T, spec, annotations string) *madePlan {
	t.Helper()
	const pool = `{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general, annotations: {%s}}, ` +
		`spec: {%s, template: {spec: {nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}, ` +
		`requirements: [{key: karpenter.azure.com/sku-name, operator: In, values: [Standard_D2s_v5, Standard_D4s_v5]}, ` +
		`{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]}}}}`
	const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2, selector: {matchLabels: {a: b}}, ` +
		`template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}}}`
	input := fmt.Sprintf(pool, annotations, spec) + "\n---\n" + web
	c := &planCommand{streams: command.Streams{In: strings.NewReader(input)}, now: time.Now, engine: engineNap}
	c.input.files, c.input.region = []string{"-"}, "eastus"
	made, err := c.make(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// movedForReasons are the moves of a fleet in which NodePool general has six nodes.
func movedForReasons(t *testing.T) *madeMoves {
	t.Helper()
	c := &planCommand{now: time.Now, consolidate: true, engine: engineNap}
	c.input.files = []string{"../../docs/examples/fleet.yaml"}
	made, err := c.makeMoves(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// explainedPending explains a pod that has room, as if it stayed pending for a reason.
func explainedPending(t *testing.T, made *madePlan, info model.ReasonInfo) (string, []string) {
	t.Helper()
	ref := model.PodRef{Namespace: "shop", Name: "web-0"}
	u := &model.Unschedulable{Pods: []int{0}, Reason: info.Reason, Message: info.Meaning}
	if info.Reason != model.ReasonNoPool && info.Reason != model.ReasonPoolInvalid {
		u.Nearest = &model.NearestMiss{
			Pool: "general", InstanceType: "Standard_D4s_v5", Zone: "eastus-1", CapacityType: model.OnDemand,
			Reason: info.Reason, Have: "this", Want: "that",
		}
	}
	out, commands := explained(t, made.pendingPod(ref, u))
	joined := strings.Join(strings.Fields(out), " ")
	if !strings.HasPrefix(joined, "shop/web-0 stays pending: ") {
		t.Errorf("does not begin with a verdict:\n%s", out)
	}
	if u.Nearest != nil && !strings.Contains(joined, " nearest miss: Standard_D4s_v5, eastus-1, on-demand, NodePool general: has this, needs that") {
		t.Errorf("does not say what the nearest miss has and what is needed:\n%s", out)
	}
	return out, commands
}

// explainedKept explains a node as if it stayed for a reason.
func explainedKept(t *testing.T, made *madeMoves, info model.ReasonInfo) (string, []string) {
	t.Helper()
	n, err := made.find("general-a")
	if err != nil {
		t.Fatal(err)
	}
	made.moves.Commands = nil
	made.moves.Kept = []model.KeptNode{{
		Node: n, Reason: info.Reason, Message: "Something has this and needs that.", Pod: model.PodRef{Namespace: "shop", Name: "web-0"},
	}}
	told := &toldNode{madeMoves: made, report: newMovesReport(made), node: n, story: &story{}}
	if told.tell() {
		t.Error("it goes")
	}
	out, commands := explained(t, told.story)
	if !strings.HasPrefix(out, "general-a stays: Something has this and needs that.\n") {
		t.Errorf("does not begin with a verdict:\n%s", out)
	}
	return out, commands
}

// understood wants the programs of a command line to know its words: nap by its own tree, kubectl
// and az by what they are known to have.
func understood(t *testing.T, line string) {
	t.Helper()
	words := shellWords(t, line)
	for len(words) > 0 {
		one := words
		if at := slices.Index(words, "|"); at >= 0 {
			one, words = words[:at], words[at+1:]
		} else {
			words = nil
		}
		switch one[0] {
		case "nap":
			understandsNap(t, one[1:], true)
		case "kubectl":
			understandsKubectl(t, one[1:])
		case "az":
			if len(one) < 3 || !slices.Contains([]string{"vm list-usage", "aks show", "aks update"}, strings.Join(one[1:3], " ")) {
				t.Errorf("%s: az has no such group and command as far as this test knows", line)
			}
		default:
			t.Errorf("%s: %s is no program that answers offer", line, one[0])
		}
	}
}

// shellWords are the words of a command line as a shell reads them.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	word, quote, inWord := "", rune(0), false
	for _, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word += string(c)
		case c == '\'' || c == '"':
			quote, inWord = c, true
		case c == ' ' && inWord:
			words, word, inWord = append(words, word), "", false
		case c != ' ':
			word, inWord = word+string(c), true
		}
	}
	if quote != 0 {
		t.Errorf("%s: a quote does not end", line)
	}
	if inWord {
		words = append(words, word)
	}
	return words
}

// understandsNap finds a command in nap's tree and lets it read its flags and, if they are
// complete, its arguments.
func understandsNap(t *testing.T, args []string, complete bool) {
	t.Helper()
	tree := newTree()
	cmd, rest, err := tree.Find(args)
	if err == nil && cmd == tree {
		err = fmt.Errorf("there is no such command")
	}
	if err == nil && complete {
		if err = cmd.ParseFlags(rest); err == nil {
			err = cmd.ValidateArgs(cmd.Flags().Args())
		}
	}
	if err != nil {
		t.Errorf("nap %s: %v", strings.Join(args, " "), err)
	}
}

// kubectlVerbs are the verbs of kubectl that answers offer, with the least and the greatest number
// of words that follow and are no flags; -1 for any.
func kubectlVerbs() map[string][2]int {
	return map[string][2]int{
		"get": {1, 2}, "describe": {2, 2}, "edit": {2, 2}, "patch": {0, 2}, "annotate": {3, -1}, "scale": {2, 2}, "replace": {0, 0},
		"drain": {1, 1}, "delete": {2, 2},
	}
}

// kubectlFlags are flags of kubectl, and whether a value follows as the next word.
func kubectlFlags() map[string]bool {
	return map[string]bool{
		"-n": true, "-A": false, "-o": true, "-l": true, "-p": true, "-f": true, "--type": true, "--local": false, "--force": false,
		"--overwrite": false, "--show-labels": false, "--field-selector": true, "--replicas": true,
	}
}

// understandsKubectl wants a verb, kinds, flags and patches that kubectl takes.
func understandsKubectl(t *testing.T, args []string) {
	t.Helper()
	line := "kubectl " + strings.Join(args, " ")
	bounds, known := kubectlVerbs()[args[0]]
	if !known {
		t.Errorf("%s: kubectl has no verb %s as far as this test knows", line, args[0])
		return
	}
	var rest []string
	flags := map[string]string{}
	for i := 1; i < len(args); i++ {
		name, value, inOne := strings.Cut(args[i], "=")
		takes, is := kubectlFlags()[name]
		switch {
		case args[i] != "-" && strings.HasPrefix(args[i], "-") && !is:
			t.Errorf("%s: kubectl has no flag %s as far as this test knows", line, name)
		case !is:
			rest = append(rest, args[i])
		case takes && !inOne && i+1 == len(args):
			t.Errorf("%s: %s lacks its value", line, name)
		case takes && !inOne:
			i++
			flags[name] = args[i]
		default:
			flags[name] = value
		}
	}
	if len(rest) < bounds[0] || bounds[1] >= 0 && len(rest) > bounds[1] {
		t.Errorf("%s: %d words for %s", line, len(rest), args[0])
	}
	kinds := []string{
		"nodepool", "aksnodeclass", "node", "pod", "pods", "pdb", "pvc", "events", "daemonsets", "resourceclaims", "deployment",
		"statefulset", "replicaset", "daemonset", "job", "cronjob", "namespace",
	}
	if len(rest) > 0 && !slices.Contains(kinds, rest[0]) {
		t.Errorf("%s: there is no kind %s as far as this test knows", line, rest[0])
	}
	if args[0] == "patch" && (!slices.Contains([]string{"json", "merge"}, flags["--type"]) || !json.Valid([]byte(flags["-p"]))) {
		t.Errorf("%s: the patch or its type is none", line)
	}
}

// The command looks at the quota that is short, which need not be that of the family.
func TestQuotaCommandNamesTheQuotaThatIsShort(t *testing.T) {
	made := plannedForReasons(t)
	for quota, want := range map[string]string{"": "standardDSv5Family", "cores": "cores"} {
		got := made.pendingCommand(model.ReasonQuota, &model.NearestMiss{InstanceType: "Standard_D4s_v5", Quota: quota})
		if !strings.Contains(got, "[?name.value=='"+want+"']") {
			t.Errorf("quota %q: %s", quota, got)
		}
	}
}
