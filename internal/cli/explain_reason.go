package cli

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nodeautoprovision/nap/internal/cli/command"
	"github.com/nodeautoprovision/nap/internal/controller/cloudprovider"
	"github.com/nodeautoprovision/nap/internal/controller/event"
	"github.com/nodeautoprovision/nap/internal/model"
	"github.com/nodeautoprovision/nap/internal/poollint"
)

// reasonNamed is a reason by its code, in any case, or nil.
func reasonNamed(name string) *model.ReasonInfo {
	for _, info := range model.Reasons() {
		if strings.EqualFold(string(info.Reason), name) {
			return &info
		}
	}
	return nil
}

// isReason reports whether a word is the code of a reason. That of an event, a finding or drift must be
// written as it is: in lower case it may be a pod's name.
func isReason(name string) bool {
	told, sent := event.Named(name)
	drifted := driftNamed(name)
	return reasonNamed(name) != nil || sent && told.Name == name || name == string(poollint.NothingToBuy) ||
		drifted != nil && drifted.name == name
}

func newExplainReason(s command.Streams) *cobra.Command {
	c := &explainCommand{plan: planCommand{streams: s, now: time.Now}}
	cmd := &cobra.Command{
		Use:   "reason CODE",
		Short: "Say what a reason means and what helps",
		Long: "Say what the code of a reason means, and what helps against it: why a pod waits\n" +
			"or a node stays, what an event of nap's or a finding of nap lint says, or why a\n" +
			"node has drifted.\ndocs/reasons.md, docs/events.md and docs/azure.md list all.",
		Example: `  nap explain reason QuotaExceeded`,
		Args:    one("the code of a reason", "QuotaExceeded"),
		RunE:    func(_ *cobra.Command, args []string) error { return c.explainReason(args[0]) },
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return reasonNames(), cobra.ShellCompDirectiveNoFileComp
		},
	}
	addOutput(cmd, &c.output, documentForms())
	return cmd
}

func (c *explainCommand) explainReason(code string) error {
	if err := checkOutput(c.output, documentForms()); err != nil {
		return err
	}
	if info := reasonNamed(code); info != nil {
		return c.tell(&story{Verdict: fmt.Sprintf("%s: %s", info.Reason, info.Meaning), Lines: []string{}, Fix: info.Fix})
	}
	if told, sent := event.Named(code); sent {
		return c.tell(storyOfEvent(&told))
	}
	if strings.EqualFold(code, string(poollint.NothingToBuy)) { // whose event has Karpenter's reason
		told, _ := event.Named(event.ReasonOf(&poollint.Finding{Code: poollint.NothingToBuy}))
		return c.tell(storyOfEvent(&told))
	}
	if drifted := driftNamed(code); drifted != nil {
		return c.tell(drifted.story())
	}
	var near []string
	for _, known := range reasonNames() {
		if strings.Contains(strings.ToLower(known), strings.ToLower(code)) {
			near = append(near, known)
		}
	}
	return fmt.Errorf("no reason %s; there are %s", code,
		cmp.Or(strings.Join(near, ", "), "those of docs/reasons.md, docs/events.md and docs/azure.md"))
}

// reasonNames are the codes of all reasons, those of events, findings and drift among them, sorted.
func reasonNames() []string {
	out := []string{string(poollint.NothingToBuy)}
	for _, info := range model.Reasons() {
		out = append(out, string(info.Reason))
	}
	for _, r := range event.Reasons() {
		out = append(out, r.Name)
	}
	for _, r := range driftReasons() {
		out = append(out, r.name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// linkOnPage is a link of the pages in docs: its text, and where it leads.
var linkOnPage = regexp.MustCompile(`\[([^\]]+)\]\(([^)#]+)[^)]*\)`)

// storyOfEvent says what an event tells, and what to do.
func storyOfEvent(r *event.Reason) *story {
	plain := func(text string) string {
		return strings.ReplaceAll(linkOnPage.ReplaceAllString(text, "$1 (docs/$2)"), "`", "")
	}
	return &story{
		Verdict: fmt.Sprintf("%s: %s.", r.Name, plain(r.Says)),
		Lines:   []string{fmt.Sprintf("It is an event of type %s on %s.", r.Type, strings.Join(r.On, ", "))}, Fix: plain(r.Do),
	}
}

// driftReason is a reason for which a node has drifted.
type driftReason struct {
	name, means string
}

// driftReasons are those of Karpenter, of nap's cloud provider and of nap retire. docs/azure.md has them.
func driftReasons() []driftReason {
	return []driftReason{
		{driftedPool, "the template of its NodePool has changed"},
		{driftedRequirements, "it does not meet the requirements of its NodePool any more"},
		{"InstanceTypeNotFound", "its size or its offering is not in the catalogue any more"},
		{string(cloudprovider.DriftNodeClass), "its AKSNodeClass has changed"},
		{string(cloudprovider.DriftVersion), "new nodes have a newer Kubernetes version"},
		{string(cloudprovider.DriftKubeletIdentity), "new nodes have another kubelet identity"},
		{string(cloudprovider.DriftImage), "new nodes have another image"},
		{string(cloudprovider.DriftSSHKey), "new nodes have another SSH key"},
		{string(cloudprovider.DriftClusterConfig), "the cluster's configuration has changed"},
		{"Retired", "nap retire was asked to replace it"},
	}
}

// driftNamed is a reason of drift by its name, in any case, or nil.
func driftNamed(name string) *driftReason {
	for _, r := range driftReasons() {
		if strings.EqualFold(r.name, name) {
			return &r
		}
	}
	return nil
}

// driftText is a reason of drift with what it means.
func driftText(reason string) string {
	if r := driftNamed(reason); r != nil {
		return reason + ", " + r.means
	}
	return reason
}

// story says what the reason means, where it is found, and what happens.
func (r *driftReason) story() *story {
	return &story{
		Verdict: fmt.Sprintf("%s: a node has drifted, since %s.", r.name, r.means),
		Lines:   []string{"Nodes that have drifted show it in nap get nodes and nap explain node, and those that would drift in nap diff."},
		Fix:     "Nothing: the node is replaced within the disruption budgets of its NodePool. nap explain node says what holds it.",
	}
}
