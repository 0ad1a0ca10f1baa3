package workload

import (
	"bytes"
	"embed"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"

	"github.com/nodeautoprovision/nap/internal/karpenterengine"
	"github.com/nodeautoprovision/nap/internal/kube"
)

//go:embed data/*.json
var data embed.FS

// decode reads the objects of an embedded file.
func decode(name string) ([]kube.Manifest, error) {
	raw, err := data.ReadFile("data/" + name)
	if err != nil {
		return nil, err
	}
	return kube.Decode(bytes.NewReader(raw), name)
}

// EastUS returns the embedded catalogue in Karpenter's form.
func EastUS() ([]*cloudprovider.InstanceType, error) {
	raw, err := data.ReadFile("data/catalog-eastus.json")
	if err != nil {
		return nil, err
	}
	catalog, err := kube.ReadCatalog(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	return karpenterengine.InstanceTypes(catalog)
}

// NodePool returns one of the embedded buying policies: D, DEF, DEF64 (at most
// 64 vCPU), DEFspot, or all, which takes any amd64 size on demand.
func NodePool(name string) (*v1.NodePool, error) {
	file := name
	if name == "all" {
		file = "DEF"
	}
	manifests, err := decode("nodepool-" + file + ".json")
	if err != nil {
		return nil, err
	}
	pool, ok := manifests[0].Object.(*v1.NodePool)
	if !ok || len(manifests) != 1 {
		return nil, fmt.Errorf("nodepool-%s.json must hold one NodePool", file)
	}
	if name == "all" {
		var kept []v1.NodeSelectorRequirementWithMinValues
		for _, r := range pool.Spec.Template.Spec.Requirements {
			if r.Key != "karpenter.azure.com/sku-family" {
				kept = append(kept, r)
			}
		}
		pool.Spec.Template.Spec.Requirements = kept
	}
	return pool, nil
}

// cluster puts workloads next to a buying policy and lets their pods come into
// being.
func cluster(pools string, workloads []kube.Manifest) (*Input, error) {
	pool, err := NodePool(pools)
	if err != nil {
		return nil, err
	}
	types, err := EastUS()
	if err != nil {
		return nil, err
	}
	expanded := kube.Expand(append(workloads, kube.Manifest{Source: "pool " + pools, Object: pool}))
	if err := errors.Join(expanded.Problems...); err != nil {
		return nil, err
	}
	in := &Input{Objects: expanded.Objects.List(), InstanceTypes: types}
	Identify(in.Objects)
	return in, nil
}

// file is a workload that was drawn once and is kept.
func file(name, pools string, pods int, about string) Workload {
	return Workload{Name: name + "/" + pools, Pods: pods, About: about, build: func(pods int) (*Input, error) {
		manifests, err := decode(name + ".json")
		if err != nil {
			return nil, err
		}
		shrink(manifests, pods)
		return cluster(pools, manifests)
	}}
}

// drawn is a workload that is drawn by seed.
func drawn(name, pools string, pods int, about string, draw func(pods int) []client.Object) Workload {
	return Workload{Name: name + "/" + pools, Pods: pods, About: about, build: func(pods int) (*Input, error) {
		var manifests []kube.Manifest
		for _, o := range draw(pods) {
			manifests = append(manifests, kube.Manifest{Source: name, Object: o})
		}
		return cluster(pools, manifests)
	}}
}

// shrink scales the replicas of deployments so that they add up to about pods.
func shrink(manifests []kube.Manifest, pods int) {
	total := 0
	for _, m := range manifests {
		total += int(*m.Object.(*appsv1.Deployment).Spec.Replicas)
	}
	if pods >= total {
		return
	}
	for _, m := range manifests {
		replicas := m.Object.(*appsv1.Deployment).Spec.Replicas
		*replicas = max(1, int32(int(*replicas)*pods/total))
	}
}
