package bootdata

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Script writes the boot data as a boot script that [Parse] reads. It is
// for machines whose boot data the cloud itself makes: fixed agent pools and
// machines of the AKS machine API.
func (b Data) Script() string {
	var labels []string
	for _, key := range slices.Sorted(maps.Keys(b.Labels)) {
		labels = append(labels, key+"="+b.Labels[key])
	}
	lines := []string{"#!/bin/bash"}
	for _, kv := range [][2]string{
		{KeyServer, b.Server},
		{KeyCA, base64.StdEncoding.EncodeToString(b.CA)},
		{KeyToken, b.Token},
		{KeyVersion, strings.TrimPrefix(b.Version, "v")},
		{KeyNodeLabels, strings.Join(labels, ",")},
		{KeyFlags, flagsString(b.Flags)},
		{KeyGPUNode, strconv.FormatBool(b.GPUDriver)},
	} {
		lines = append(lines, fmt.Sprintf("%s='%s'", kv[0], kv[1]))
	}
	return strings.Join(lines, "\n") + "\n"
}

// flagsString is the command line that [ParseFlags] reads.
func flagsString(f Flags) string {
	var words []string
	add := func(name, value string) {
		if value != "" {
			words = append(words, "--"+name+"="+value)
		}
	}
	var taints []string
	for _, t := range f.Taints {
		taints = append(taints, t.ToString())
	}
	add("register-with-taints", strings.Join(taints, ","))
	if f.MaxPods > 0 {
		add("max-pods", strconv.FormatInt(f.MaxPods, 10))
	}
	add("kube-reserved", reservedString(f.KubeReserved))
	add("system-reserved", reservedString(f.SystemReserved))
	var eviction []string
	if f.EvictionMemory != (Threshold{}) {
		eviction = append(eviction, "memory.available<"+thresholdString(f.EvictionMemory))
	}
	if f.EvictionDisk != (Threshold{}) {
		eviction = append(eviction, "nodefs.available<"+thresholdString(f.EvictionDisk))
	}
	add("eviction-hard", strings.Join(eviction, ","))
	if f.ExternalCloud {
		add("cloud-provider", "external")
	}
	add("node-ip", f.NodeIP)
	add("provider-id", f.ProviderID)
	return strings.Join(words, " ")
}

func reservedString(list corev1.ResourceList) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		pairs = append(pairs, string(name)+"="+q.String())
	}
	return strings.Join(pairs, ",")
}

// thresholdString writes the threshold as a kubelet flag does.
func thresholdString(t Threshold) string {
	if t.Fraction > 0 {
		return strconv.FormatFloat(t.Fraction*100, 'f', -1, 64) + "%"
	}
	return strconv.FormatInt(t.Bytes, 10)
}
