// Package crds holds the custom resource definitions that nap needs in a
// cluster: AKSNodeClass, generated from package v1beta1, NodeAutoProvisioning, Snapshot,
// SnapshotShard, LedgerPage and ShadowReport, generated from package v1alpha1, and Karpenter's, taken
// from the Karpenter module at the version that nap is built with.
//
// Karpenter's NodePool and NodeClaim get one thing added: the label domains of
// Azure accept only the labels that nap understands, and AKS's oldest labels are
// refused as upstream refuses them, and those of AKS's preview with what says the same
// today, so that a typing error in a requirement is refused when it is applied, and not found out later by a pod
// that stays pending.
package crds

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	karpenter "sigs.k8s.io/karpenter/pkg/apis"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/api/v1beta1"
)

//go:generate go tool -modfile=../../tools/controller-gen/go.mod controller-gen object crd paths=../v1beta1/... paths=../v1alpha2/... paths=../v1alpha1/... output:crd:artifacts:config=.

//go:embed karpenter.azure.com_aksnodeclasses.yaml
var aksNodeClass []byte

//go:embed nap.azure.com_nodeautoprovisionings.yaml
var nodeAutoProvisioning []byte

//go:embed nap.azure.com_snapshots.yaml
var snapshot []byte

//go:embed nap.azure.com_snapshotshards.yaml
var snapshotShard []byte

//go:embed nap.azure.com_ledgerpages.yaml
var ledgerPage []byte

//go:embed nap.azure.com_shadowreports.yaml
var shadowReport []byte

// category is what kubectl get takes for all kinds that nap works with.
const category = "nap"

// All returns the definitions in the order in which to apply them. Every call
// returns new objects.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	read, err := embedded()
	if err != nil {
		return nil, err
	}
	out := make([]*apiextensionsv1.CustomResourceDefinition, len(read))
	for i, crd := range read {
		out[i] = crd.DeepCopy()
	}
	return out, nil
}

// embedded are the definitions, which are never changed. They are 120 kB of YAML and those of Karpenter, which take
// tens of milliseconds to read: a process reads them once.
var embedded = sync.OnceValues(read)

func read() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, text := range [][]byte{
		aksNodeClass, nodeAutoProvisioning, snapshot, snapshotShard, ledgerPage, shadowReport,
		karpenter.NodePoolCRD, karpenter.NodeClaimCRD, karpenter.NodeOverlayCRD, karpenter.CapacityBufferCRD,
	} {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("read an embedded custom resource definition: %w", err)
		}
		if !slices.Contains(crd.Spec.Names.Categories, category) {
			crd.Spec.Names.Categories = append(crd.Spec.Names.Categories, category)
		}
		if crd.Spec.Group == karpenter.Group {
			for i := range crd.Spec.Versions {
				restrictLabels(crd.Spec.Versions[i].Schema.OpenAPIV3Schema)
			}
		}
		out = append(out, crd)
	}
	return out, nil
}

// ShadowReport returns the definition of that kind, which is all that a shadow needs.
func ShadowReport() (*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	for _, crd := range all {
		if crd.Spec.Names.Kind == "ShadowReport" {
			return crd, nil
		}
	}
	return nil, errors.New("there is no definition of ShadowReport")
}

// restrictLabels walks a schema and, wherever Karpenter restricts its own label
// domain, restricts Azure's in the same way.
func restrictLabels(s *apiextensionsv1.JSONSchemaProps) {
	if s == nil {
		return
	}
	var added apiextensionsv1.ValidationRules
	for _, rule := range s.XValidations {
		if !strings.Contains(rule.Rule, `.endsWith("karpenter.sh")`) {
			continue
		}
		variable, format := "self", "%s"
		if strings.HasPrefix(rule.Rule, "self.all(x,") {
			variable, format = "x", "self.all(x, %s)"
		}
		added = append(added,
			domainRule(v1beta1.LabelDomain, v1beta1.RequirementLabels(), variable, format),
			domainRule(v1beta1.AKSLabelDomain, v1beta1.AKSRequirementLabels(), variable, format))
		added = append(added, previewRules(variable, format)...)
		for _, label := range v1beta1.LegacyLabels() {
			added = append(added, apiextensionsv1.ValidationRule{
				Rule:    fmt.Sprintf(format, fmt.Sprintf("%s != %q", variable, label)),
				Message: fmt.Sprintf("label %q is restricted: AKS sets it itself", label),
			})
		}
	}
	s.XValidations = append(s.XValidations, added...)
	for name, property := range s.Properties {
		restrictLabels(&property)
		s.Properties[name] = property
	}
	if s.Items != nil {
		restrictLabels(s.Items.Schema)
	}
}

// previewRules refuse the labels of the preview: they would become labels that nothing
// carries, and restrict nothing. Of a requirement's key each is refused with what says
// the same today.
func previewRules(variable, format string) apiextensionsv1.ValidationRules {
	const domain = v1beta1.PreviewLabelDomain
	all := apiextensionsv1.ValidationRule{
		Rule: fmt.Sprintf(format, fmt.Sprintf(`!%s.startsWith(%q)`, variable, domain+"/")),
		Message: fmt.Sprintf(`labels of the domain %q of the preview restrict nothing any more, use those of %s, which "nap convert" writes`,
			domain, v1beta1.LabelDomain),
	}
	rules := apiextensionsv1.ValidationRules{all}
	if variable != "self" {
		return rules
	}
	for _, l := range v1beta1.PreviewLabels() {
		key := domain + "/" + l[0]
		rules = append(rules, apiextensionsv1.ValidationRule{
			Rule: fmt.Sprintf("self != %q", key), Message: fmt.Sprintf("instead of %s use %s", key, l[1]),
		})
	}
	return rules
}

// domainRule accepts labels of other domains, and of this one those listed.
func domainRule(domain string, allowed []string, variable, format string) apiextensionsv1.ValidationRule {
	quoted := make([]string, len(allowed))
	for i, label := range allowed {
		quoted[i] = `"` + label + `"`
	}
	test := fmt.Sprintf(`%[1]s in [%[2]s] || !%[1]s.find("^([^/]+)").endsWith(%[3]q)`, variable, strings.Join(quoted, ", "), domain)
	return apiextensionsv1.ValidationRule{
		Rule:    fmt.Sprintf(format, test),
		Message: fmt.Sprintf("label domain %q is restricted to: %s", domain, strings.Join(allowed, ", ")),
	}
}
