package cli

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/nodeautoprovision/nap/internal/mask"
	"github.com/nodeautoprovision/nap/internal/prerequisites"
)

// bundleKinds are the objects that a bundle has whole.
func bundleKinds() []schema.GroupVersionResource {
	of := func(group, version, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
	}
	return []schema.GroupVersionResource{
		of("karpenter.sh", "v1", "nodepools"), of("karpenter.sh", "v1", "nodeclaims"), of("karpenter.azure.com", "v1beta1", "aksnodeclasses"),
		of("nap.azure.com", "v1alpha1", "snapshots"), of("", "v1", "nodes"), of("", "v1", "events"),
	}
}

// logLines is how many lines of each of nap's pods a bundle has.
const logLines = 5000

// bundle is an archive under way.
type bundle struct {
	tar  *tar.Writer
	when time.Time
	// left are notes on what could not be put in.
	left []string
}

// add puts a file into the archive, masked.
func (b *bundle) add(name, text string) error {
	text = mask.Text(text)
	err := b.tar.WriteHeader(&tar.Header{Name: "nap-support/" + name, Mode: 0o600, Size: int64(len(text)), ModTime: b.when})
	if err == nil {
		_, err = io.WriteString(b.tar, text)
	}
	return err
}

// writeBundle writes the support archive. A file that is there already is not touched.
func writeBundle(ctx context.Context, path string, cluster *rest.Config, f *prerequisites.Facts, report *doctorReport) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--bundle: %w: give a file that is not there yet, in a folder that you may write to", err)
	}
	zipped := gzip.NewWriter(file)
	b := &bundle{tar: tar.NewWriter(zipped), when: f.Now}
	err = b.fill(ctx, cluster, f, report)
	if err = errors.Join(err, b.tar.Close(), zipped.Close(), file.Close()); err != nil {
		return fmt.Errorf("write the support archive %s: %w", path, err)
	}
	return nil
}

func (b *bundle) fill(ctx context.Context, cluster *rest.Config, f *prerequisites.Facts, report *doctorReport) error {
	var text strings.Builder
	if err := report.write(&text, true); err != nil {
		return err
	}
	read := *f.Cluster
	read.CustomCAs = nil
	for _, text := range f.Cluster.CustomCAs {
		read.CustomCAs = append(read.CustomCAs, fmt.Sprintf("%d characters", len(text)))
	}
	read.Proxy.HTTP, read.Proxy.HTTPS = mask.Address(read.Proxy.HTTP), mask.Address(read.Proxy.HTTPS)
	documents := map[string]any{"report.json": report, "read/cluster.json": read, "read/network.json": f.Network, "read/roles.json": f.Roles,
		"read/quota.json": f.Quotas, "read/providers.json": f.Subscription.Providers,
		"read/windows.json": f.Windows, "read/kubernetes.json": f.Kubernetes}
	if err := b.add("report.txt", text.String()); err != nil {
		return err
	}
	for _, name := range []string{"report.json", "read/cluster.json", "read/network.json", "read/roles.json", "read/quota.json",
		"read/providers.json", "read/windows.json", "read/kubernetes.json"} {
		raw, err := json.MarshalIndent(documents[name], "", "  ")
		if err != nil {
			return err
		}
		if err := b.add(name, string(raw)+"\n"); err != nil {
			return err
		}
	}
	if err := errors.Join(b.objects(ctx, cluster), b.logs(ctx, cluster)); err != nil {
		return err
	}
	return b.add("left-out.txt", strings.Join(append(b.left, ""), "\n"))
}

// objects puts nap's objects in, kind by kind.
func (b *bundle) objects(ctx context.Context, cluster *rest.Config) error {
	kube, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("connect to the API server %s: %w", cluster.Host, err)
	}
	for _, kind := range bundleKinds() {
		list, err := kube.Resource(kind).List(ctx, metav1.ListOptions{})
		if err != nil {
			b.left = append(b.left, fmt.Sprintf("%s: %v", kind.Resource, err))
			continue
		}
		for i := range list.Items {
			unstructured.RemoveNestedField(list.Items[i].Object, "metadata", "managedFields")
		}
		// Lines of YAML are folded, also within a secret: the objects are masked before.
		raw, err := yaml.Marshal(mask.Value(list.UnstructuredContent()))
		if err != nil {
			return err
		}
		if err := b.add("objects/"+kind.Resource+".yaml", string(raw)); err != nil {
			return err
		}
	}
	return nil
}

// logs puts the last lines of nap's pods in.
func (b *bundle) logs(ctx context.Context, cluster *rest.Config) error {
	kube, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return fmt.Errorf("connect to the API server %s: %w", cluster.Host, err)
	}
	pods, err := kube.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=nap"})
	if err != nil {
		b.left = append(b.left, fmt.Sprintf("logs: %v", err))
		return nil
	}
	lines := int64(logLines)
	for i := range pods.Items {
		p := &pods.Items[i]
		raw, err := kube.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(ctx)
		if err != nil {
			b.left = append(b.left, fmt.Sprintf("logs of pod %s/%s: %v", p.Namespace, p.Name, err))
			continue
		}
		if err := b.add("logs/"+p.Namespace+"_"+p.Name+".log", string(raw)); err != nil {
			return err
		}
	}
	return nil
}
