package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// inputCase is an input that people have, with what is to be said about it.
type inputCase struct {
	// args follow the name of the program; a file of testdata/cases is the last word.
	args string
	code int
	// said are patterns that stand in the output, unsaid some that do not.
	said, unsaid []string
}

func inputCases() map[string]inputCase {
	return map[string]inputCase{
		"savings of agent pools": {args: "savings -f aks-cluster-with-agent-pools", said: []string{
			`8 nodes for 28 pods cost \$2,803.20/month`, `: (6\d|7\d)% less`, `disks|not counted: network traffic, data disks`,
		}},
		"savings with claims that the input lacks": {args: "savings -f running-pods-without-claims", said: []string{
			`with nap: 3 nodes`, `: 76% less`, `lacks 2 volume claims of running pods, the first is shop/d-db-0: .* kubectl get pvc,pv`,
			`2 evictions; 1 pod would find no place and must stay on 1 node of today, which counts here, too \(\$0.260/h\)`,
		}},
		"savings in JSON with claims that the input lacks": {args: "savings -o json -f running-pods-without-claims", said: []string{
			`"savedPercent": 76.1, "evictions": 2, "pending": 1, "keptNodes": 1, "hourlyKeptCost": 0.259699`, `"notes": \[ "partial answer: `,
		}},
		"agent pools are not given back": {args: "plan --consolidate -f aks-cluster-with-agent-pools", said: []string{
			`8 nodes of no NodePool cost \$3.840/h and are not nap's to remove; nap savings says`, `nap savings`,
		}, unsaid: []string{`\$0\.000/h`}},
		"pods that the cluster autoscaler leaves": {args: "plan -f pods-safe-to-evict", said: []string{
			`3 pods with the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: "false", which has no effect in nap`, `karpenter.sh/do-not-disrupt: "true" takes its place`,
		}},
		"savings with pods that the cluster autoscaler leaves": {args: "savings -f pods-safe-to-evict", said: []string{
			`3 pods with the annotation cluster-autoscaler.kubernetes.io/safe-to-evict: "false", which has no effect in nap`, `karpenter.sh/do-not-disrupt: "true" takes its place`,
		}},
		"DaemonSet that states limits alone": {args: "plan -f daemonset-with-limits-only", code: 2, said: []string{`Standard_D4pls_v6 .* 3 of 3.86`}},
		"limit of four GPUs": {args: "plan -f gpu-spot-limits", code: 2, said: []string{
			` 4 NC4as_T4_v3 eastus-1 spot gpu-spot`, ` 2 NC4as_T4_v3 eastus-1 on-demand gpu-od`, `TaintNotTolerated`, `fix: Add a toleration for sku=gpu:NoSchedule`,
		}},
		"pods that no machine takes": {args: "plan -f impossible-pods", code: 2, said: []string{
			`huge InsufficientResources: ([^:]*: ){2}has cpu 368.18, needs cpu 5000 fix: .{0,60}largest machine on sale`,
			`wrongzone PodRequirement: ([^:]*: ){4}there are eastus-1, eastus-2, eastus-3`,
			`wrongzone2 PodRequirement: ([^:]*: ){4}there are eastus-1, eastus-2, eastus-3`,
			`Select karpenter.sh/nodepool instead of agentpool`, `Select karpenter.sh/capacity-type instead of kubernetes.azure.com/scalesetpriority`,
			`Select karpenter.azure.com/sku-series instead of karpenter.k8s.aws/instance-family`, `nap buys linux machines only`,
			`sysmode PodRequirement: ([^:]*: ){2}has (no such label|kubernetes.azure.com/mode=user), needs kubernetes.azure.com/mode In \[system\]`,
			`fix: Create a NodePool with the label kubernetes.azure.com/mode: system`,
			`volume claim "missing" does not exist`, `scheduling gates left out, the first is default/gated`, `PriorityClass does-not-exist`,
		}},
		"kinds, defaults and templates": {args: "plan -f kinds-limitrange-rollout", code: 2, said: []string{
			`30 of default/norequests`, `of Rollout default/roll`, `Pod default/inits`, `Pod default/podlevel`, `47 of 47.42 `,
			`[ ,]3 of Job default/sweep`, // completions cap the parallelism
			`2 of 3.86`,                  // nothing counts twice: 30 by the LimitRange, 4 of the Rollout, 6 of the Job, 3 of podlevel, 6 of inits
		}, unsaid: []string{`4 of Job|5 of Job`}},
		"zones that other pods of the plan take": {args: "explain deploy/apart -f zones-used-up", code: 2, said: []string{
			`pod(s)? stays? pending: Every domain holds pods that this pod must not be near`, `fix: Allow more zones`, `not the cause: taints, labels and zones`,
		}, unsaid: []string{`drop karpenter.azure.com/sku-family`}},
		"premium disks without premium storage": {args: "plan -f premium-disks", code: 2, said: []string{
			`1 Standard_D2_v4 .* 1 of StatefulSet default/cheap`,
			`default/db VolumeTopology: .* has no premium storage, needs premium storage for a volume of the pod`,
			`fix: Let NodePool plain buy machines with karpenter.azure.com/sku-storage-premium-capable=true`,
		}},
		"limit below the only size": {args: "explain nodepool small -f pools-that-buy-nothing", code: 2, said: []string{
			`NodePool small buys nothing: of its limit of cpu 1 it uses 0, and Standard_D4s_v5 takes 4`, `it has no node`,
		}, unsaid: []string{`request -`}},
		"bounds that exclude each other": {args: "explain nodepool contrary -f pools-that-buy-nothing", code: 2, said: []string{
			`buys nothing: no size meets its requirements`,
		}},
		"label against a requirement": {args: "explain nodepool labelled -f pools-that-buy-nothing", code: 2, said: []string{`no size meets its requirements`}},
		"limit of no node": {args: "explain nodepool closed -f pools-that-buy-nothing", code: 2, said: []string{
			`its limit is 0 nodes, and it has 0`, `limit of nvidia.com/gpu: 0 of 6 used`,
		}},
		"pod for a label against a requirement": {args: "explain pod web -f pools-that-buy-nothing", code: 2, said: []string{
			`with karpenter.azure.com/sku-family In \[E\], karpenter.azure.com/sku-family In \[D\]\.`, `fix: Make the label karpenter.azure.com/sku-family=D `,
		}},
		"room that a pod leaves": {args: "explain pod waits -f node-with-pods-that-ended", said: []string{`it leaves cpu 860m, memory 12Gi, pods 109 free`}},
		"pod that has ended":     {args: "explain pod done -f node-with-pods-that-ended", said: []string{`has ended`}},
		"more disk than the class gives": {args: "explain pod disk -f node-with-pods-that-ended", code: 2, said: []string{
			`fix: Raise spec.osDiskSizeGB of the AKSNodeClass`,
		}},
		"name of a host": {args: "explain pod host -f node-with-pods-that-ended", code: 2, said: []string{`fix: Drop kubernetes.io/hostname`}},
		"two rules on a label of which no value meets both": {args: "explain pod contrary -f node-with-pods-that-ended", code: 2, said: []string{
			`fix: Correct what the pod asks for on kubernetes.io/arch: no value meets all of it`,
		}, unsaid: []string{`let NodePool`}},
		"names in a plan": {args: "plan -f names-that-nap-may-not-know", code: 2, said: []string{`its name has 67 characters; .* with more than 54`}},
		"names in lint": {args: "lint -f names-that-nap-may-not-know", said: []string{
			`its name has 67 characters`, `names Standard_DS2_v2: nap's built-in table lacks it`, `1 NodePool, 0 findings`,
		}},
		"overlaid price": {args: "plan -f nodeoverlay-price-and-capacity", code: 2, said: []string{`Standard_E4s_v5 .* \$0.052/h`}},
		"workloads of two kinds with one name": {args: "plan -f workloads-of-one-name", code: 2, said: []string{
			`2 of default/redis, 2 of StatefulSet default/redis`,
		}},
		"the Deployment of two workloads with one name": {args: "explain deploy/redis -f workloads-of-one-name", said: []string{
			`Deployment default/redis: 2 of 2 pods wait, and all get a place`,
		}},
		"two workloads of one name": {args: "explain workload redis -f workloads-of-one-name", code: 1, said: []string{
			`default/redis may be Deployment default/redis or StatefulSet default/redis; give the kind`, `nap explain deployment/redis`,
		}},
		"more pods of one of two workloads": {args: "what-if --scale redis=5 -f workloads-of-one-name", code: 1, said: []string{
			`redis may be Deployment default/redis or StatefulSet default/redis; give the kind, too: --scale 'Deployment default/redis=NUMBER'`,
		}},
		"labels of EKS": {args: "plan -f nodepool-eks-labels", code: 1, said: []string{
			`instance-category", which Azure does not have, use: karpenter.azure.com/sku-family`,
			`instance-generation", which Azure does not have, use: karpenter.azure.com/sku-version`,
		}, unsaid: []string{`Buy 1 node`}},
		"three mistakes in a NodePool": {args: "plan -f nodepool-mistakes", code: 1, said: []string{
			`got "WhenUnderutilized", allowed: WhenEmptyOrUnderutilized, WhenEmpty, Balanced`, `got "Dsv5", allowed: one capital letter`,
			`got "Spot", allowed: on-demand, spot, reserved`,
		}, unsaid: []string{`Buy 1 node`}},
		"selectors of the preview":   {args: "plan -f nodepool-preview-selectors", code: 1, said: []string{`karpenter.azure.com/sku-series`, `nap convert -f FILE`}},
		"NodePool of an old version": {args: "plan -f nodepool-v1beta1", code: 1, said: []string{`allowed: karpenter.sh/v1; nap convert -f FILE writes it so`}},
		"spot node that is the cheapest": {args: "explain node n1 -f one-spot-node", said: []string{`(?s)n1 stays: .*cheapest\s+machines\s+for\s+them\s+cost`}, unsaid: []string{
			`no machine that can be bought`, `fix: See what binds`,
		}},
		"spot node that is the cheapest is not given back": {args: "plan --consolidate -f one-spot-node", said: []string{
			`Remove nothing: keep 1 node`, `NoCheaperSet|SpotToSpotDisabled`,
		}, unsaid: []string{`no machine that can be bought`, `NoPlaceForPods`}},
		"spot node of a NodePool with a limit is not given back": {args: "plan --consolidate -f one-spot-node-with-limit", said: []string{
			`Remove nothing: keep 1 node`, `NoCheaperSet|SpotToSpotDisabled`,
		}, unsaid: []string{`no machine that can be bought`, `NodePoolLimit`, `NoPlaceForPods`}},
		"new machine without a zone": {args: "explain pod default/b -f machine-without-zone", said: []string{
			`on a new Standard_D8as_v5 without a zone, spot, `,
		}},
		"plan of a machine without a zone": {args: "plan -o wide -f machine-without-zone", code: 2, said: []string{
			` none spot `, `1 x Standard_D8as_v5 regional spot, 0 other offerings`,
		}},
		"node whose zone decides no price": {
			args: "explain node n1 --region eastus -f nodes-without-zone-or-capacity-type", code: 2,
			said: []string{`n1 goes`, `it is Standard_D8as_v5, on-demand, \$0.371/h, NodePool default`},
		},
		"node of unknown price": {args: "explain node n2 --region eastus -f nodes-without-zone-or-capacity-type", said: []string{
			`no label karpenter.sh/capacity-type`, `it is Standard_D8as_v5, eastus-1, NodePool default`,
		}, unsaid: []string{`/h,`}},
		"node without a zone":                  {args: "explain node n1 -f machine-without-zone", said: []string{`it is Standard_D4as_v5, regional, spot, `}},
		"the CronJob of a shop when it is due": {args: "plan --due -f shop", code: 2, said: []string{`4 of Job `}},
		"spot node of a NodePool with a limit": {args: "explain node n1 -f one-spot-node-with-limit", said: []string{`SpotToSpotDisabled`}, unsaid: []string{
			`NodePoolLimit`, `no machine that can be bought`,
		}},
		"overhead and selector of a RuntimeClass": {args: "plan -f runtimeclass-overhead", code: 2, said: []string{
			`2 of default/isolated`, `needs kubernetes.azure.com/kata-mshv-vm-isolation In \[true\]`, `create a NodePool whose template has this label`,
		}},
		"node with another disk than new ones": {args: "get nodes -f node-with-another-disk", said: []string{` 0.212 `}},
		"NodePool whose node has another disk": {args: "status -f node-with-another-disk", said: []string{` \$0.212/h `}},
		"price of a node with another disk":    {args: "explain node general-a -f node-with-another-disk", said: []string{`on-demand, \$0.212/h`}},
		"node that has drifted": {args: "explain node general-a -f node-with-another-disk", said: []string{
			`it has drifted since 2026-11-22T11:00:00Z: NodeClassDrift, its AKSNodeClass has changed`,
		}},
		"NodePools by kubectl's singular":  {args: "get nodepool --region eastus -f nodes-in-odd-states", said: []string{`NAME `}},
		"NodeClaims by kubectl's singular": {args: "get nodeclaim --region eastus -f nodes-in-odd-states"},
		"states of nodes": {args: "get nodes -o wide --region eastus -f nodes-in-odd-states", said: []string{
			`n1 .*Ready,SchedulingDisabled .* [0-9]+y`, `n2 .* NotReady `, `n3 .* Ready `,
		}},
		"price of the nodes of NodePools": {args: "status --region eastus -f nodes-in-odd-states", said: []string{
			`2 of 3 nodes: \$0.[0-9]+/h`,
		}},
		"status with prices of another region": {args: "status --region westeurope -f nodes-in-odd-states", said: []string{
			`nodes in eastus, and prices are of westeurope`,
		}},
		"node whose pod has lost its volume claim": {args: "explain node n1 --region eastus -f nodes-in-odd-states", said: []string{
			`pod default/cache-0 would find no other place`, `NoPlaceForPods`, `volume claim "data-cache-0" does not exist`,
		}, unsaid: []string{`do-not-disrupt`, `PodDoNotDisrupt`}},
		"StatefulSet whose StorageClass is missing": {args: "plan --region eastus -f statefulset-without-storageclass", code: 2, said: []string{
			`3 of StatefulSet default/db VolumeTopology: volume claim "data-db-0" .* does not exist; so with the others`,
		}, unsaid: []string{`data-db-1`}},
		"limit that two pods wait for": {args: "explain workload shop/web -f two-pods-beyond-limit", code: 2, said: []string{
			`raise the limit of NodePool general, for all 2 pods that wait for it`, `\{"limits":\{ ?"cpu":"6","memory":"22733Mi"\}\}`,
		}},
		"a shop": {args: "plan -f shop", code: 2, said: []string{
			`planned with 6 pods as HorizontalPodAutoscaler web wants`, `planning with those that AKS creates`, `4 pods are planned only when it is due`,
			`3 x .*: 2 of shop/web, 1 of StatefulSet shop/pg`,
		}, unsaid: []string{` none +on-demand`}},
		"few machines where disks cost": {args: "plan -f small-pods-pool-and-daemonset", code: 2, said: []string{`Buy 3 nodes .* for disks`}},
	}
}

func TestInputsThatPeopleHave(t *testing.T) {
	for name, c := range inputCases() {
		t.Run(name, func(t *testing.T) {
			args := strings.Fields(c.args)
			args[len(args)-1] = "testdata/cases/" + args[len(args)-1] + ".yaml"
			out, errs, code := nap.Run(t, args...)
			if !slices.Contains(args, "-o") {
				fitsColumns(t, c.args, out+errs)
			}
			// Sentences are broken into lines.
			if all := strings.Join(strings.Fields(out+errs), " "); code != c.code {
				t.Errorf("exit code %d, want %d; output:\n%s", code, c.code, all)
			} else {
				for _, pattern := range c.said {
					if !regexp.MustCompile(pattern).MatchString(all) {
						t.Errorf("nothing matches %q in:\n%s", pattern, all)
					}
				}
				for _, pattern := range c.unsaid {
					if regexp.MustCompile(pattern).MatchString(all) {
						t.Errorf("something matches %q in:\n%s", pattern, all)
					}
				}
			}
		})
	}
}

// TestNothingIsPlannedThatAPIServersRefuse holds the rules of the definitions against
// plans: values out of range, rules in CEL, and fields that an AKSNodeClass lacks.
func TestNothingIsPlannedThatAPIServersRefuse(t *testing.T) {
	claim := "apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: c}\nspec:\n" +
		"  nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}\n" +
		"  requirements: [{key: karpenter.sh/capacity-type, operator: Is, values: [spot]}]\n"
	class := func(spec string) string {
		return "apiVersion: karpenter.azure.com/v1beta1\nkind: AKSNodeClass\nmetadata: {name: default}\nspec: " + spec + "\n"
	}
	for name, c := range map[string]struct{ input, want string }{
		"weight": {poolWith("weight: 200", "requirements: []"), `NodePool general: spec.weight: Invalid value: 200: .* 100`},
		"rule": {
			poolWith("weight: 1", "requirements: [{key: karpenter.sh/nodepool, operator: In, values: [a]}]"),
			`NodePool general: spec.template.spec.requirements\[0\].key: Invalid value: .*restricted`,
		},
		"budget": {poolWith("disruption: {budgets: [{nodes: 10%, schedule: '@daily'}]}", "requirements: []"), `NodePool general: spec.disruption.budgets: .*'schedule' must be set with 'duration'`},
		"claim":  {claim, `NodeClaim c: spec.requirements\[0\].operator: Unsupported value: "Is": supported values: "In"`},
		"disk":   {class("{osDiskSizeGB: 5}"), `AKSNodeClass default: spec.osDiskSizeGB: Invalid value: 5: .* 30`},
		"field":  {class("{maxpods: 50}"), `AKSNodeClass default: spec.maxpods: there is no such field`},
		"overlay": {
			"apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\nspec: {requirements: [], price: '1', priceAdjustment: '-5%'}\n",
			`NodeOverlay o: .*cannot set both 'price' and 'priceAdjustment'`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.WriteFile("in.yaml", []byte(c.input+"---\n"+podWith("{containers: [{name: c}]}")), 0o600); err != nil {
				t.Fatal(err)
			}
			out, errs, code := nap.Run(t, "plan", "-f", "in.yaml", "--budget", "0")
			if code != 1 || !regexp.MustCompile(`nap: in.yaml: document 1: `+c.want).MatchString(errs) {
				t.Errorf("exit code %d, want 1 and %q; output:\n%s%s", code, c.want, errs, out)
			}
		})
	}
}
