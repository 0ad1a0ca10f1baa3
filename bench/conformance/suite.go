package conformance

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Kind tells what a suite runs against.
type Kind string

const (
	// API is a suite of custom resource definitions: it starts an API server itself.
	API Kind = "api"
	// Cluster is a suite that runs against a cluster with a controller.
	Cluster Kind = "cluster"
)

// The engines that a suite of kind Cluster is run with. A suite of kind API has none.
const (
	EngineNap       = "nap"
	EngineKarpenter = "karpenter"
)

// Suite is one published test suite.
type Suite struct {
	// Name is unique and stands in the record and on the page.
	Name string
	Kind Kind
	// Module is the path of the Go module that publishes the suite, and Version its
	// version; empty means the version that nap is built with.
	Module, Version string
	// Package is the suite's folder in the module.
	Package string
	// Judges says in a few words what the suite asserts on.
	Judges string
	// Definitions are the folders of the module with embedded custom resource
	// definitions that those of nap take the place of.
	Definitions []string
	// SetUp is the name of a file in the package that the package's template of the same
	// purpose takes the place of, and LeftOut are test files that are not compiled.
	// Both are for suites whose set-up starts far more than an API server.
	SetUp   string
	LeftOut []string
	// Added is the path in the module of a file that is added to it, AddedText what it holds;
	// empty for most suites.
	Added, AddedText string
	// Replaced are texts in the files of the package, with those that take their place; nil
	// for most suites.
	Replaced map[string]string
	// Beside is a program of the module that must run beside the lab; the zero value for
	// most suites, which need none.
	Beside Program
}

// Program is a program of a suite's module.
type Program struct {
	// Package is its folder in the module. Definition is the file in the module with the
	// custom resource definition that it needs.
	Package, Definition string
}

const (
	karpenterModule = "sigs.k8s.io/karpenter"
	// ProviderModule is the path of the module of the Azure provider.
	ProviderModule = "github.com/Azure/karpenter-provider-azure"
	// providerVersion is the commit of 21 August 2026, whose suites hold what release
	// 1.14 of the provider and AKS's own node auto-provisioning accept.
	providerVersion = "v1.14.3-0.20260821231906-352646f59929"
)

// draConfigOptions registers with the kind DRAConfig the options of requests, such as those
// of a list. The module does not, so that neither its suite nor its driver can read or write
// an object of the kind.
//
//go:embed testdata/draconfig-options.txt
var draConfigOptions string

// Suites are all suites, those that take minutes first.
func Suites() []Suite {
	karpenter := func(name string, kind Kind, folder, judges string) Suite {
		s := Suite{Name: name, Kind: kind, Module: karpenterModule, Package: folder, Judges: judges}
		if kind == API {
			s.Definitions = []string{"pkg/apis/crds"}
		}
		return s
	}
	provider := func(version string, leftOut ...string) Suite {
		return Suite{
			Name: "aksnodeclass-" + version, Kind: API, Module: ProviderModule, Version: providerVersion,
			Package: "pkg/apis/" + version, Judges: "AKSNodeClass " + version + ": schema, CEL rules, hash of the published types",
			Definitions: []string{"pkg/apis/crds"}, SetUp: "suite_test.go", LeftOut: leftOut,
		}
	}
	dra := karpenter("dra", Cluster, "test/suites/dra", "dynamic resource allocation, with the module's driver")
	dra.Added, dra.AddedText = "dra-kwok-driver/pkg/apis/v1alpha1/options.go", draConfigOptions
	dra.Replaced = map[string]string{
		"c-4x-amd64-linux": "Standard_D4s_v5", "m-8x-amd64-linux": "Standard_E8s_v5",
		// The suite waits until the class is gone before it deletes the machines. KWOK's class
		// goes at once, Azure's when no machine is left.
		"env.CleanupObjects(&drav1alpha1.": "env.CleanupObjects(&v1.NodePool{}, &v1.NodeClaim{}, &drav1alpha1.",
	}
	dra.Beside = Program{"dra-kwok-driver", "dra-kwok-driver/pkg/apis/crds/test.karpenter.sh_draconfigs.yaml"}
	return []Suite{
		karpenter("karpenter-v1", API, "pkg/apis/v1", "NodePool and NodeClaim: schema, CEL rules, defaults, budgets"),
		karpenter("karpenter-v1alpha1", API, "pkg/apis/v1alpha1", "NodeOverlay: schema and CEL rules"),
		karpenter("capacitybuffer-v1beta1", API, "pkg/apis/autoscaling/v1beta1", "CapacityBuffer: schema and CEL rules"),
		provider("v1beta1", "aksnodeclass_localdns_test.go"),
		provider("v1alpha2"),
		karpenter("regression", Cluster, "test/suites/regression", "what a controller does with pods, NodePools and NodeClaims"),
		karpenter("disruption", Cluster, "test/suites/disruption", "drift, expiration, termination, repair and reboot"),
		karpenter("performance", Cluster, "test/suites/performance", "time, memory and utilization with 1,000 pods"),
		dra,
	}
}

// Named returns the suites of the given names, all suites of the kind where none is given.
func Named(kind Kind, names []string) ([]Suite, error) {
	var out []Suite
	var known []string
	for _, s := range Suites() {
		if s.Kind != kind {
			continue
		}
		known = append(known, s.Name)
		if len(names) == 0 || slices.Contains(names, s.Name) {
			out = append(out, s)
		}
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return nil, fmt.Errorf("suite %q: allowed are %s", n, strings.Join(known, ", "))
		}
	}
	return out, nil
}
