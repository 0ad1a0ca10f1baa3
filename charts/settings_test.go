package charts

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/strvals"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// environment are the container's variables; those from elsewhere have their source.
func environment(t *testing.T, text string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, v := range the[*appsv1.Deployment](t, objects(t, text)).Spec.Template.Spec.Containers[0].Env {
		if _, twice := out[v.Name]; twice {
			t.Errorf("%s is there twice", v.Name)
		}
		out[v.Name] = v.Value
		if v.ValueFrom != nil {
			source, err := json.Marshal(v.ValueFrom)
			if err != nil {
				t.Fatal(err)
			}
			out[v.Name] = string(source)
		}
	}
	return out
}

func TestSettingsBecomeVariables(t *testing.T) {
	got := environment(t, template(t, "nap", "nap-system", append(least(),
		"settings.batchIdleDuration=2s", "settings.maxNodes=20000000", "settings.evictionPrice=0.0025", "settings.vmMemoryOverheadPercent=0",
		"settings.nominatePods=false", "settings.networkPluginMode=", "settings.nodeIdentities={"+identity+"/a,"+identity+"/b}", "settings.additionalTags.team=a",
		"settings.additionalTags.stage=b", "settings.featureGates.spotToSpotConsolidation=true", "settings.featureGates.nodeRepair=false",
		"settings.nodeOsdiskDiskencryptionsetId="+diskSet, "settings.napRetailPrices=https://prices.example", "settings.logLevel=null")))
	want := map[string]string{
		"BATCH_IDLE_DURATION": "2s", "MAX_NODES": "20000000", "EVICTION_PRICE": "0.0025", "VM_MEMORY_OVERHEAD_PERCENT": "0",
		"NOMINATE_PODS": "false", "NETWORK_PLUGIN_MODE": "", "NODE_IDENTITIES": identity + "/a," + identity + "/b", "ADDITIONAL_TAGS": "stage=b,team=a",
		"FEATURE_GATES": "NodeRepair=false,SpotToSpotConsolidation=true", "NODE_OSDISK_DISKENCRYPTIONSET_ID": diskSet,
		"NAP_RETAIL_PRICES": "https://prices.example", "CLUSTER_NAME": "cluster", "ARM_RESOURCE_GROUP": "group",
		"AZURE_SUBSCRIPTION_ID": "00000000-0000-0000-0000-000000000001", "BOOTSTRAP_TOKENS": "own", "METRICS_SECURE": "true",
		"MEMORY_LIMIT": `{"resourceFieldRef":{"containerName":"controller","resource":"limits.memory","divisor":"1"}}`,
		"CPU_REQUESTS": `{"resourceFieldRef":{"containerName":"controller","resource":"requests.cpu","divisor":"1m"}}`,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	got = environment(t, template(t, "nap", "nap-system", append(least(), "bootstrapTokenSecret.name=token", "prices.configMap=prices",
		"metrics.certificateSecret=certificate", "settings.memoryLimit=1000000000", "settings.cpuRequests=2000")))
	for name, value := range map[string]string{
		"KUBELET_BOOTSTRAP_TOKEN": `{"secretKeyRef":{"name":"token","key":"token"}}`, "BOOTSTRAP_TOKENS": "given",
		"PRICES_FILE": "/etc/nap/prices/prices.yaml", "METRICS_CERT_DIR": "/etc/nap/metrics", "MEMORY_LIMIT": "1000000000", "CPU_REQUESTS": "2000",
	} {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

// Every setting of the schema comes out under the name that the controller reads; that
// these names are the controller's is tested where its flags are.
func TestEverySettingReachesItsVariable(t *testing.T) {
	var schema struct {
		Properties struct {
			Settings struct {
				Properties map[string]struct {
					Type any
					Enum []any
				}
			}
		}
	}
	text, err := os.ReadFile("nap/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	const uuid = "00000000-0000-0000-0000-000000000001"
	forms := map[string]string{ // values of settings that take some only
		"vnetGuid": uuid, "kubeletIdentityClientId": uuid, "clusterEndpoint": "https://c", "dnsServiceIp": "10.0.0.10", "armCloud": "AzureChinaCloud",
		"vnetSubnetId": provider + "Microsoft.Network/virtualNetworks/v/subnets/s", "nodeIdentities": "{" + identity + "/i}",
		"nodeOsdiskDiskencryptionsetId": diskSet, "sigAccessTokenServerUrl": "https://s",
		"napBootstrapRegistry": "a.azurecr.io/b", "napPackagesUrl": "https://p", "schedulerConfig": "podTopologySpread: null",
		"metricsBindAddress": ":8080", "healthProbeBindAddress": ":8081", "batchIdleDuration": "2s", "providerBatchIdleDuration": "2s",
		"providerBatchMaxDuration": "6s", "bootstrapTokenLife": "1h", "leaderElectionRetryPeriod": "2s", "leaderElectionRenewDeadline": "9s", "memoryLimit": "1000000000",
	}
	besides := map[string]string{ // what has to be set with them
		"sigSubscriptionId": "useSig=true", "sigAccessTokenServerUrl": "useSig=true,settings.sigSubscriptionId=s",
		"napSecureTlsAadResource": "napSecureTlsBootstrapping=true",
	}
	for setting, property := range schema.Properties.Settings.Properties {
		value := "1"
		switch kind := fmt.Sprint(property.Type); {
		case len(property.Enum) > 0:
			value = fmt.Sprint(property.Enum[0])
		case setting == "featureGates":
			setting, value = "featureGates.nodeRepair", "true"
		case strings.Contains(kind, "boolean"):
			value = "false"
		case strings.Contains(kind, "object"):
			setting, value = setting+".a", "text"
		case strings.Contains(kind, "array"):
			value = "{/a}"
		case strings.Contains(setting, "Duration"), strings.HasSuffix(setting, "Budget"), strings.HasSuffix(setting, "Interval"), strings.HasSuffix(setting, "Payback"),
			setting == "leaderElectionRetryPeriod", setting == "leaderElectionRenewDeadline", setting == "bootstrapTokenLife", setting == "bootstrapJoinTime", setting == "napLaunchSettle":
			value = "1m"
		case strings.Contains(kind, "number"):
			value = "0.1"
		case strings.Contains(kind, "string"):
			value = "text"
		}
		if form, ok := forms[setting]; ok {
			value = form
		}
		with := ""
		if beside := besides[setting]; beside != "" {
			with = ",settings." + beside
		}
		variable := strings.ToUpper(regexp.MustCompile(`[A-Z]`).ReplaceAllString(strings.SplitN(setting, ".", 2)[0], "_$0"))
		got, set := environment(t, template(t, "nap", "nap-system", append(least(), "settings."+setting+"="+value+with)))[variable]
		if !set || !strings.Contains(got, strings.Trim(value, "{}")) {
			t.Errorf("settings.%s=%s: %s is %q", setting, value, variable, got)
		}
	}
}

func TestContradictingValuesAreRefused(t *testing.T) {
	for set, want := range map[string]string{
		"image.repository=":                                                          "image.repository: must be set: where the image of `make image` was pushed to",
		"settings.clusterName=":                                                      "settings.clusterName: must be set: the name of the AKS cluster",
		"settings.azureSubscriptionId=null":                                          "settings.azureSubscriptionId: must be set: the subscription of the AKS cluster",
		"workloadIdentity.clientId=":                                                 "workloadIdentity.clientId: must be set: the client id of the managed identity of nap; or set workloadIdentity.enabled=false",
		"settings.disableLeaderElection=true":                                        "replicas: 2 with settings.disableLeaderElection=true: every replica would buy; set replicas=1",
		"settings.bootstrapTokens=given":                                             "bootstrapTokenSecret.name: must be set with settings.bootstrapTokens=given",
		"bootstrapTokenSecret.name=token,settings.bootstrapTokens=own":               "bootstrapTokenSecret.name: is set and settings.bootstrapTokens is own",
		"settings.enableProfiling=true,metrics.secure=false":                         "profiles hold what is in memory, tokens too; set metrics.secure=true",
		"settings.pricesFile=/p,prices.configMap=prices":                             "settings.pricesFile: is set and prices.configMap too",
		"metrics.certificateSecret=certificate,metrics.secure=false":                 "metrics.certificateSecret: is set and metrics.secure is false",
		"serviceAccount.create=false":                                                "serviceAccount.name: must be set with serviceAccount.create=false",
		"settings.batchIdelDuration=1s":                                              "additional properties 'batchIdelDuration' not allowed",
		"settings.batchIdleDuration=soon":                                            "does not match pattern",
		"settings.engine=karpentr":                                                   "value must be one of 'nap', 'karpenter'",
		"settings.featureGates.NodeRepairs=true":                                     "additional properties 'NodeRepairs' not allowed",
		"settings.batchIdleDuration=1m1s":                                            "settings.batchMaxDuration: got 10s, must be at least settings.batchIdleDuration, 1m1s",
		"settings.planBudget=2h":                                                     "settings.planBudget: got 2h, allowed are 0s to 1m",
		"settings.bootstrapTokenLife=30m":                                            "settings.bootstrapTokenLife: got 30m, must be more than twice settings.bootstrapJoinTime, 15m",
		"settings.leaderElectionLeaseDuration=5s":                                    "settings.leaderElectionRenewDeadline: got 8s, must be less than settings.leaderElectionLeaseDuration, 5s",
		"settings.leaderElectionRetryPeriod=4001ms":                                  "settings.leaderElectionRetryPeriod: got 4001ms, must be at most half of settings.leaderElectionRenewDeadline, 8s",
		"settings.metricsPort=8081":                                                  "settings.metricsPort: got 8081, which is settings.healthProbePort, too",
		"settings.metricsBindAddress=:9090":                                          "settings.metricsBindAddress: got :9090, its port must be that of settings.metricsPort, 8080",
		"settings.vnetSubnetId=foo":                                                  "settings.vnetSubnetId: got foo, must be of the form /subscriptions/SUBSCRIPTION/",
		"settings.ledgerLabels=a b":                                                  "/settings/ledgerLabels': 'a b' does not match pattern",
		"settings.consolidationMinimumSaving=1":                                      "exclusiveMaximum: got 1, want 1",
		"settings.engine=karpenter,shadow.enabled=true":                              "settings.engine: karpenter with shadow.enabled=true",
		"settings.maxNodes=-1":                                                       "minimum: got -1, want 0",
		"replicas=0":                                                                 "minimum: got 0, want 1",
		"image.digest=latest":                                                        "does not match pattern",
		"fullnameOverride=Nap":                                                       "does not match pattern",
		"metrics.monitorAPIVersion=v1":                                               "value must be one of 'monitoring.coreos.com/v1', 'azmonitoring.coreos.com/v1'",
		"nameOverride=Foo Bar":                                                       "/nameOverride': 'Foo Bar' does not match pattern",
		"settings.healthProbeBindAddress=127.0.0.1:8081":                             "settings.healthProbeBindAddress: got 127.0.0.1:8081, where the kubelet cannot ask",
		"settings.healthProbeBindAddress=localhost:8081":                             "settings.healthProbeBindAddress: got localhost:8081, where the kubelet cannot ask",
		"metrics.podMonitor.enabled=true,metrics.serviceMonitor.enabled=true":        "metrics.serviceMonitor.enabled: true with metrics.podMonitor.enabled=true",
		"metrics.podMonitor.enabled=true,metrics.reader.create=false":                "metrics.reader.secret: must be set with metrics.reader.create=false and metrics.podMonitor.enabled=true",
		"metrics.serviceMonitor.enabled=true,metrics.reader.create=false":            "metrics.reader.secret: must be set with metrics.reader.create=false and metrics.serviceMonitor.enabled=true",
		"metrics.podMonitor.enabled=true,settings.metricsBindAddress=127.0.0.1:8080": "metrics.podMonitor.enabled: true with settings.metricsBindAddress=127.0.0.1:8080",
		"podLabels.app\\.kubernetes\\.io/name=x":                                     "podLabels: has the key app.kubernetes.io/name, which the chart sets itself",
		"podLabels.azure\\.workload\\.identity/use=x":                                "podLabels: has the key azure.workload.identity/use, which the chart sets itself",
		"additionalLabels.helm\\.sh/chart=x":                                         "additionalLabels: has the key helm.sh/chart, which the chart sets itself",
		"additionalLabels.azure\\.workload\\.identity/use=x":                         "additionalLabels: has the key azure.workload.identity/use",
		"rules.labels.app\\.kubernetes\\.io/instance=x":                              "rules.labels: has the key app.kubernetes.io/instance, which the chart sets itself",
		"serviceAccount.annotations.azure\\.workload\\.identity/client-id=x":         "serviceAccount.annotations: has the key azure.workload.identity/client-id",
	} {
		args := []string{"template", "nap", "nap"}
		for _, s := range append(least(), strings.Split(set, ",")...) {
			args = append(args, "--set", s)
		}
		out, err := command(args...)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", set, err, want)
		}
		if out != "" {
			t.Errorf("%s: something was rendered", set)
		}
	}
}

// A strict decoder refuses a key that is there twice.
func TestObjectsOwnLabelsCount(t *testing.T) {
	set := append(least(), "additionalLabels.team=all", "podLabels.team=pods", "dashboards.labels.team=graphs", "rules.labels.team=rules",
		"metrics.monitorLabels.team=monitors", "dashboards.enabled=true", "metrics.podMonitor.enabled=true", "rules.enabled=true")
	got := map[string]string{}
	for _, o := range objects(t, template(t, "nap", "nap-system", set)) {
		switch o := o.(type) {
		case *appsv1.Deployment:
			got["deployment"], got["pods"] = o.Labels["team"], o.Spec.Template.Labels["team"]
		case *corev1.ConfigMap:
			got["graphs"] = o.Labels["team"]
		case *monitoringv1.PodMonitor:
			got["monitors"] = o.Labels["team"]
		case *monitoringv1.PrometheusRule:
			got["rules"] = o.Labels["team"]
		}
	}
	want := map[string]string{"deployment": "all", "pods": "pods", "graphs": "graphs", "monitors": "monitors", "rules": "rules"}
	if !maps.Equal(got, want) {
		t.Errorf("labels %v, want %v", got, want)
	}
}

// No address, 0, is text: --set would make a number of it.
func TestMonitorOfNoMetricsIsRefused(t *testing.T) {
	for _, monitor := range []string{"podMonitor", "serviceMonitor"} {
		values := map[string]any{}
		if err := strvals.ParseInto(strings.Join(least(), ","), values); err != nil {
			t.Fatal(err)
		}
		values["settings"].(map[string]any)["metricsBindAddress"] = "0"
		r := Release{Chart: "nap", Name: "nap", Namespace: "nap-system", Values: values}
		if _, err := r.Render(); err != nil {
			t.Errorf("without a monitor: %v", err)
		}
		values["metrics"] = map[string]any{monitor: map[string]any{"enabled": true}}
		want := "metrics." + monitor + ".enabled: true with settings.metricsBindAddress=0, which serves no metrics"
		if _, err := r.Render(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What looks like a contradiction and is none renders.
func TestMonitorsAndLabelsThatAgreeRender(t *testing.T) {
	for _, set := range []string{
		"metrics.podMonitor.enabled=true,metrics.reader.create=false,metrics.reader.secret=mine",
		"metrics.podMonitor.enabled=true,metrics.reader.create=false,metrics.secure=false",
		"settings.metricsBindAddress=127.0.0.1:8080", "settings.healthProbeBindAddress=0.0.0.0:8081",
		"workloadIdentity.enabled=false,podLabels.azure\\.workload\\.identity/use=x", "nameOverride=Foo_Bar.1",
	} {
		if len(objects(t, template(t, "nap", "nap-system", append(least(), strings.Split(set, ",")...)))) == 0 {
			t.Errorf("%s renders nothing", set)
		}
	}
}
