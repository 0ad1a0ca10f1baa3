package systemnode

import (
	"context"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Substitutions are all that differs between a container and its process besides the
// program in the place of the image, by the variable that says so. Beside them, a path
// below a mount in any variable is the path of the same file where the lab has the
// volume.
func Substitutions(programs ...Program) map[string]string {
	all := map[string]string{
		"PATH":     "as a container of the image has it",
		"HOSTNAME": "the pod's name, as the container runtime sets it",
		"KUBECONFIG": "names the API server, and token and CA in the mounted folder of the ServiceAccount, " +
			"which in a container are found at a fixed path",
		"LEADER_ELECTION_NAMESPACE":  "the pod's namespace, which in a container is a file at a fixed path",
		"AZURE_CLIENT_ID":            "set by the webhook of workload identity, which the lab plays",
		"AZURE_TENANT_ID":            "set by that webhook",
		"AZURE_AUTHORITY_HOST":       "set by that webhook",
		"AZURE_FEDERATED_TOKEN_FILE": "set by that webhook; the file is where the lab has it",
	}
	for _, program := range programs {
		for _, port := range program.Ports {
			all[port.Address] = "a port of this replica's own, on loopback; " + port.Number + " is left out"
		}
	}
	return all
}

// in is the number of the port as variables have it, and whether it is listened on.
func (p Port) in(variables map[string]string) (number int, listens bool) {
	if address := variables[p.Address]; address != "" {
		_, text, err := net.SplitHostPort(address)
		number, wrong := strconv.Atoi(text)
		return number, err == nil && wrong == nil
	}
	if number, err := strconv.Atoi(variables[p.Number]); err == nil {
		return number, true
	}
	return p.Default, true
}

// variable is NAME and value.
type variable struct{ name, value string }

func asMap(variables []variable) map[string]string {
	all := map[string]string{}
	for _, v := range variables {
		all[v.name] = v.value
	}
	return all
}

// environment is all of the process's environment, as NAME=value.
func (c *container) environment(ctx context.Context) ([]string, error) {
	stated, err := c.stated(ctx)
	if err != nil {
		return nil, err
	}
	all := asMap(stated)
	for name, value := range all {
		all[name] = c.here(value)
	}
	replaced := c.substituted(all)
	for _, p := range c.program.Ports {
		if replaced[p.Address] != "" {
			delete(all, p.Number) // the address says it
		}
	}
	maps.Copy(all, replaced)
	variables := make([]string, 0, len(all))
	for name, value := range all {
		variables = append(variables, name+"="+value)
	}
	slices.Sort(variables)
	return variables, nil
}

// here is a path below a mount as it is on this machine; any other text stays.
func (c *container) here(value string) string {
	for _, m := range c.spec.VolumeMounts {
		if rest, below := strings.CutPrefix(value, m.MountPath); below && (rest == "" || rest[0] == '/') {
			return filepath.Join(c.worker.volume(m.Name), filepath.FromSlash(m.SubPath), filepath.FromSlash(rest))
		}
	}
	return value
}

// serviceAccountPath is where clients look for the ServiceAccount's token.
const serviceAccountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// substituted are the variables that the process has besides what the pod states.
func (c *container) substituted(stated map[string]string) map[string]string {
	pod := c.worker.current()
	if pod == nil {
		return nil
	}
	out := map[string]string{
		"PATH":     "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOSTNAME": pod.Name,
	}
	if c.here(serviceAccountPath) != serviceAccountPath {
		out["KUBECONFIG"] = c.worker.kubeconfig()
		if stated["LEADER_ELECTION_NAMESPACE"] == "" {
			out["LEADER_ELECTION_NAMESPACE"] = pod.Namespace
		}
	}
	if identity := c.worker.identity(); identity.client != "" {
		out["AZURE_CLIENT_ID"], out["AZURE_TENANT_ID"] = identity.client, identity.tenant
		out["AZURE_AUTHORITY_HOST"] = c.worker.pods.cfg.WorkloadIdentity.AuthorityHost
		out["AZURE_FEDERATED_TOKEN_FILE"] = c.worker.federatedToken()
	}
	for _, p := range c.program.Ports {
		if number, listens := p.in(stated); listens {
			out[p.Address] = local(c.ports[number])
		}
	}
	return out
}

// stated are the variables that the pod's specification gives the container, the last of
// a name counts.
func (c *container) stated(ctx context.Context) ([]variable, error) {
	pod := c.worker.current()
	if pod == nil {
		return nil, fmt.Errorf("pod %s is gone", c.worker.key)
	}
	var all []variable
	for _, from := range c.spec.EnvFrom {
		more, err := c.from(ctx, pod, from)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	for _, e := range c.spec.Env {
		value, given, err := e.Value, true, error(nil)
		if e.ValueFrom != nil {
			value, given, err = c.valueFrom(ctx, pod, e.ValueFrom)
		}
		if err != nil {
			return nil, fmt.Errorf("variable %s of container %s: %w", e.Name, c.spec.Name, err)
		}
		if !given {
			continue
		}
		// $(NAME) stands for a variable before this one.
		for _, before := range slices.Backward(all) {
			value = strings.ReplaceAll(value, "$("+before.name+")", before.value)
		}
		all = append(all, variable{e.Name, value})
	}
	return all, nil
}

// from are the variables of a ConfigMap or Secret.
func (c *container) from(ctx context.Context, pod *corev1.Pod, from corev1.EnvFromSource) ([]variable, error) {
	data := map[string]string{}
	core := c.worker.pods.client.CoreV1()
	switch {
	case from.ConfigMapRef != nil:
		m, err := core.ConfigMaps(pod.Namespace).Get(ctx, from.ConfigMapRef.Name, metav1.GetOptions{})
		if err != nil && !(apierrors.IsNotFound(err) && optional(from.ConfigMapRef.Optional)) {
			return nil, err
		}
		if err == nil {
			data = m.Data
		}
	case from.SecretRef != nil:
		s, err := core.Secrets(pod.Namespace).Get(ctx, from.SecretRef.Name, metav1.GetOptions{})
		if err != nil && !(apierrors.IsNotFound(err) && optional(from.SecretRef.Optional)) {
			return nil, err
		}
		if err == nil {
			data = texts(s.Data)
		}
	}
	var all []variable
	for name, value := range data {
		all = append(all, variable{from.Prefix + name, value})
	}
	return all, nil
}

func optional(b *bool) bool { return b != nil && *b }

func texts(data map[string][]byte) map[string]string {
	out := map[string]string{}
	for name, value := range data {
		out[name] = string(value)
	}
	return out
}

// valueFrom reads a variable's value from where the specification says. Optional ones
// that are not there are not given.
func (c *container) valueFrom(ctx context.Context, pod *corev1.Pod, source *corev1.EnvVarSource) (value string, given bool, err error) {
	core := c.worker.pods.client.CoreV1()
	key := func(data map[string]string, err error, name string, mayLack *bool) (string, bool, error) {
		if apierrors.IsNotFound(err) && optional(mayLack) {
			return "", false, nil
		}
		if err != nil {
			return "", false, err
		}
		value, ok := data[name]
		if !ok && !optional(mayLack) {
			return "", false, fmt.Errorf("there is no key %q", name)
		}
		return value, ok, nil
	}
	switch {
	case source.FieldRef != nil:
		value, err = c.field(pod, source.FieldRef.FieldPath)
		return value, true, err
	case source.ResourceFieldRef != nil:
		value, err = resourceField(c.spec, source.ResourceFieldRef)
		return value, true, err
	case source.ConfigMapKeyRef != nil:
		ref := source.ConfigMapKeyRef
		m, err := core.ConfigMaps(pod.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		return key(m.Data, err, ref.Key, ref.Optional)
	case source.SecretKeyRef != nil:
		ref := source.SecretKeyRef
		s, err := core.Secrets(pod.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		return key(texts(s.Data), err, ref.Key, ref.Optional)
	}
	return "", false, fmt.Errorf("a source of values that the lab does not know")
}

// field reads a field of the pod, as the downward API has it.
func (c *container) field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.podIP":
		return c.worker.address, nil
	case "status.hostIP":
		return nodeIP, nil
	}
	for prefix, data := range map[string]map[string]string{"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			return data[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("field %q is none that the lab knows", path)
}

// resourceField reads a request or limit of the container, in units of the divisor and
// rounded up.
func resourceField(spec *corev1.Container, ref *corev1.ResourceFieldSelector) (string, error) {
	kind, name, _ := strings.Cut(ref.Resource, ".")
	list := spec.Resources.Requests
	if kind == "limits" {
		list = spec.Resources.Limits
	}
	quantity, ok := list[corev1.ResourceName(name)]
	if !ok {
		return "", fmt.Errorf("container %s states no %s", spec.Name, ref.Resource)
	}
	divisor := ref.Divisor.DeepCopy()
	if divisor.IsZero() {
		return strconv.FormatInt(quantity.Value(), 10), nil
	}
	have, unit := quantity.MilliValue(), divisor.MilliValue()
	return strconv.FormatInt((have+unit-1)/unit, 10), nil
}
