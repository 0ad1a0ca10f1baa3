{{/* The name of everything: the release's, or what the values say. */}}
{{- define "nap.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains "nap" .Release.Name -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-nap" .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}
{{- end -}}

{{- define "nap.selectorLabels" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "nap" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "nap.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "nap.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "nap.labels" -}}
{{ include "nap.labelsWith" (list . nil) }}
{{- end -}}

{{/*
Labels of an object which has some of its own: of a key that is in additionalLabels, too, the
object's own counts. It takes a list, of the chart's values at the top and the object's labels.
*/}}
{{- define "nap.labelsWith" -}}
{{ include "nap.ownLabels" (index . 0) }}
{{- with mergeOverwrite (deepCopy ((index . 0).Values.additionalLabels | default dict)) (index . 1 | default dict) }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "nap.serviceAccountName" -}}
{{ .Values.serviceAccount.name | default (ternary (include "nap.fullname" .) "default" .Values.serviceAccount.create) }}
{{- end -}}

{{- define "nap.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end -}}

{{/* One setting as an environment variable has it. Helm reads numbers as floats. */}}
{{- define "nap.setting" -}}
{{- if kindIs "map" . -}}
{{- $pairs := list -}}
{{- range $k, $v := . }}{{ $pairs = append $pairs (printf "%s=%v" $k $v) }}{{ end -}}
{{ join "," $pairs }}
{{- else if kindIs "slice" . -}}
{{ join "," . }}
{{- else if and (kindIs "float64" .) (eq (printf "%d" (int64 .)) (printf "%.0f" .)) (eq (floor .) .) -}}
{{ int64 . }}
{{- else -}}
{{ . }}
{{- end -}}
{{- end -}}

{{/* Whether a setting of the name is given: null is not. */}}
{{- define "nap.given" -}}
{{- $settings := (index . 0).Values.settings -}}
{{- if and (hasKey $settings (index . 1)) (not (kindIs "invalid" (get $settings (index . 1)))) }}yes{{ end -}}
{{- end -}}

{{/* Whose bootstrap tokens machines join with; as the controller decides without it. */}}
{{- define "nap.bootstrapTokens" -}}
{{- if .Values.settings.bootstrapTokens -}}
{{ .Values.settings.bootstrapTokens }}
{{- else if hasPrefix "aksmachineapi" (.Values.settings.provisionMode | default "") -}}
none
{{- else if .Values.bootstrapTokenSecret.name -}}
given
{{- else -}}
own
{{- end -}}
{{- end -}}

{{/* Which features are on: those of roles.yaml. */}}
{{- define "nap.features" -}}
{{- $s := .Values.settings -}}
{{- $gates := $s.featureGates | default dict -}}
{{- $tokens := include "nap.bootstrapTokens" . -}}
{{- $on := list -}}
{{- if ne (toString $s.defaultNodePools) "None" }}{{ $on = append $on "DefaultNodePools" }}{{ end -}}
{{- if $gates.nodeOverlay }}{{ $on = append $on "NodeOverlay" }}{{ end -}}
{{- if $gates.capacityBuffer }}{{ $on = append $on "CapacityBuffer" }}{{ end -}}
{{- if $gates.podDeletionCostManagement }}{{ $on = append $on "PodDeletionCostManagement" }}{{ end -}}
{{- if $s.schedulerConfig }}{{ $on = append $on "SchedulerConfig" }}{{ end -}}
{{- if eq (toString $s.ignoreDraRequests) "false" }}{{ $on = append $on "DynamicResources" }}{{ end -}}
{{- if not $s.disableLeaderElection }}{{ $on = append $on "LeaderElection" }}{{ end -}}
{{- if eq $tokens "own" }}{{ $on = append $on "BootstrapTokens" }}{{ end -}}
{{- if eq $tokens "cluster" }}{{ $on = append $on "ClusterBootstrapTokens" }}{{ end -}}
{{- if .Values.metrics.secure }}{{ $on = append $on "SecureMetrics" }}{{ end -}}
{{- join "," $on -}}
{{- end -}}

{{- define "nap.metricsPortName" -}}
{{ ternary "https-metrics" "http-metrics" .Values.metrics.secure }}
{{- end -}}

{{/* Which pods admission policies pass by: exempt ones, DaemonSets' and the kubelet's own. */}}
{{- define "nap.podExemptions" -}}
- name: not-exempt
  expression: "!has(object.metadata.labels) || !('{{ . }}' in object.metadata.labels) || object.metadata.labels['{{ . }}'] != 'Off'"
- name: not-of-a-daemonset
  expression: "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, o.kind == 'DaemonSet' || o.kind == 'Node')"
{{- end -}}

{{/* Go's form of a duration, such as 1m30s, in milliseconds. */}}
{{- define "nap.milliseconds" -}}
{{- $ms := 0.0 -}}
{{- range regexFindAll "[0-9]+([.][0-9]+)?(ms|s|m|h)" . -1 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $ms = addf $ms (mulf (float64 (trimSuffix $unit .)) (get (dict "ms" 1.0 "s" 1000.0 "m" 60000.0 "h" 3600000.0) $unit)) -}}
{{- end -}}
{{ $ms }}
{{- end -}}

{{/*
Settings that are durations which the controller refuses, a line each. Of each one: what holds
without it, and the least and the most that is allowed, empty for no bound.
*/}}
{{- define "nap.durationFaults" -}}
{{- $faults := list -}}
{{- $given := dict -}}
{{- $ms := dict -}}
{{- $positive := "0.000001ms" -}}
{{- range list
  (list "batchIdleDuration" "1s" $positive "")
  (list "batchMaxDuration" "10s" "" "")
  (list "planBudget" "250ms" "" "1m")
  (list "consolidationBudget" "1s" "" "1m")
  (list "evictionPayback" "1h" $positive "")
  (list "bootstrapJoinTime" "15m" $positive "1h")
  (list "bootstrapTokenLife" "24h" "" "720h")
  (list "leaderElectionLeaseDuration" "10s" "3s" "10m")
  (list "leaderElectionRenewDeadline" "8s" "1s" "")
  (list "leaderElectionRetryPeriod" "1s" "100ms" "")
  (list "napLaunchSettle" "15s" "" "4m")
  (list "shadowInterval" "1m" "1s" "")
  (list "napUpgradeCheckInterval" "15m" "1s" "24h")
  (list "providerBatchIdleDuration" "1s" "" "30s")
  (list "providerBatchMaxDuration" "5s" "" "30s")
-}}
{{- $name := index . 0 -}}
{{- $least := index . 2 -}}
{{- $most := index . 3 -}}
{{- $value := get $.Values.settings $name | default (index . 1) -}}
{{- $is := float64 (include "nap.milliseconds" $value) -}}
{{- $_ := set $given $name $value -}}
{{- $_ := set $ms $name $is -}}
{{- $low := lt $is (float64 (include "nap.milliseconds" $least)) -}}
{{- $high := and $most (gt $is (float64 (include "nap.milliseconds" $most))) -}}
{{- if or $low $high -}}
{{- $from := ternary "more than 0s" ($least | default "0s") (eq $least $positive) -}}
{{- $faults = append $faults (printf "settings.%s: got %s, allowed are %s" $name $value (ternary (printf "%s to %s" $from $most) (printf "%s or more" $from | replace "more than 0s or more" "more than 0s") (ne $most ""))) -}}
{{- end -}}
{{- end -}}
{{- if lt $ms.batchMaxDuration $ms.batchIdleDuration -}}
{{- $faults = append $faults (printf "settings.batchMaxDuration: got %s, must be at least settings.batchIdleDuration, %s" $given.batchMaxDuration $given.batchIdleDuration) -}}
{{- end -}}
{{- if le $ms.bootstrapTokenLife (mulf 2.0 $ms.bootstrapJoinTime) -}}
{{- $faults = append $faults (printf "settings.bootstrapTokenLife: got %s, must be more than twice settings.bootstrapJoinTime, %s" $given.bootstrapTokenLife $given.bootstrapJoinTime) -}}
{{- end -}}
{{- if ne (floor (divf $ms.leaderElectionLeaseDuration 1000.0)) (divf $ms.leaderElectionLeaseDuration 1000.0) -}}
{{- $faults = append $faults (printf "settings.leaderElectionLeaseDuration: got %s, allowed are whole seconds" $given.leaderElectionLeaseDuration) -}}
{{- end -}}
{{- if ge $ms.leaderElectionRenewDeadline $ms.leaderElectionLeaseDuration -}}
{{- $faults = append $faults (printf "settings.leaderElectionRenewDeadline: got %s, must be less than settings.leaderElectionLeaseDuration, %s" $given.leaderElectionRenewDeadline $given.leaderElectionLeaseDuration) -}}
{{- end -}}
{{- if gt (mulf 2.0 $ms.leaderElectionRetryPeriod) $ms.leaderElectionRenewDeadline -}}
{{- $faults = append $faults (printf "settings.leaderElectionRetryPeriod: got %s, must be at most half of settings.leaderElectionRenewDeadline, %s" $given.leaderElectionRetryPeriod $given.leaderElectionRenewDeadline) -}}
{{- end -}}
{{- if gt $ms.providerBatchIdleDuration $ms.providerBatchMaxDuration -}}
{{- $faults = append $faults (printf "settings.providerBatchIdleDuration: got %s, must be at most settings.providerBatchMaxDuration, %s" $given.providerBatchIdleDuration $given.providerBatchMaxDuration) -}}
{{- end -}}
{{ join "\n" $faults }}
{{- end -}}

{{/* Settings that are resource ids of Azure, and others of which only one may be set: a line for each that the controller refuses. */}}
{{- define "nap.azureFaults" -}}
{{- $s := .Values.settings -}}
{{- $faults := list -}}
{{- $id := "/subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/" -}}
{{- $form := "(?i)^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/" -}}
{{- if and $s.vnetSubnetId (not (regexMatch (print $form "Microsoft.Network/virtualNetworks/[^/]+/subnets/[^/]+$") $s.vnetSubnetId)) -}}
{{- $faults = append $faults (printf "settings.vnetSubnetId: got %s, must be of the form %sMicrosoft.Network/virtualNetworks/VNET/subnets/SUBNET" $s.vnetSubnetId $id) -}}
{{- end -}}
{{- range $s.nodeIdentities -}}
{{- if not (regexMatch (print $form "Microsoft.ManagedIdentity/userAssignedIdentities/[^/]+$") .) -}}
{{- $faults = append $faults (printf "settings.nodeIdentities: got %s, must be of the form %sMicrosoft.ManagedIdentity/userAssignedIdentities/IDENTITY" . $id) -}}
{{- end -}}
{{- end -}}
{{- with $s.nodeOsdiskDiskencryptionsetId -}}
{{- if not (regexMatch (print $form "Microsoft.Compute/diskEncryptionSets/[^/]+$") .) -}}
{{- $faults = append $faults (printf "settings.nodeOsdiskDiskencryptionsetId: got %s, must be of the form %sMicrosoft.Compute/diskEncryptionSets/SET" . $id) -}}
{{- else if not (hasPrefix (printf "/subscriptions/%s/" $s.azureSubscriptionId | lower) (lower .)) -}}
{{- $faults = append $faults (printf "settings.nodeOsdiskDiskencryptionsetId: got %s, must be in settings.azureSubscriptionId, %s" . $s.azureSubscriptionId) -}}
{{- end -}}
{{- end -}}
{{- if and $s.armCloud $s.azureEnvironmentFilepath -}}
{{- $faults = append $faults "settings.armCloud: is set and settings.azureEnvironmentFilepath too: leave one of them out" -}}
{{- else if not (has (upper ($s.armCloud | default "AzurePublicCloud")) (list "AZUREPUBLICCLOUD" "AZURECLOUD" "AZURECHINACLOUD" "AZUREUSGOVERNMENTCLOUD" "AZUREUSGOVERNMENT")) -}}
{{- $faults = append $faults (printf "settings.armCloud: got %s, allowed are AzurePublicCloud, AzureChinaCloud, AzureUSGovernmentCloud" $s.armCloud) -}}
{{- end -}}
{{- if and $s.useSig (not $s.sigSubscriptionId) }}{{ $faults = append $faults "settings.sigSubscriptionId: must be set with settings.useSig=true: the subscription of AKS's shared image galleries" }}{{ end -}}
{{- range list "sigSubscriptionId" "sigAccessTokenServerUrl" -}}
{{- if and (get $s .) (not $s.useSig) }}{{ $faults = append $faults (printf "settings.%s: is set and settings.useSig is not true: set settings.useSig=true, or leave it out" .) }}{{ end -}}
{{- end -}}
{{- if and $s.napSecureTlsAadResource (not $s.napSecureTlsBootstrapping) }}{{ $faults = append $faults "settings.napSecureTlsAadResource: is set and settings.napSecureTlsBootstrapping is not true: set settings.napSecureTlsBootstrapping=true, or leave it out" }}{{ end -}}
{{- if and $s.napCreateMachinesPool (eq (toString $s.provisionMode) "aksscriptless") }}{{ $faults = append $faults "settings.napCreateMachinesPool: true with settings.provisionMode=aksscriptless, which makes no machines in an agent pool: leave one of them out" }}{{ end -}}
{{- if and (eq (toString $s.networkPlugin) "none") (eq (toString $s.networkPluginMode) "overlay") }}{{ $faults = append $faults "settings.networkPluginMode: overlay with settings.networkPlugin=none: leave it empty" }}{{ end -}}
{{ join "\n" $faults }}
{{- end -}}

{{/* Endpoints of which the Service and the probes would not find the port, or that take one port both. */}}
{{- define "nap.endpointFaults" -}}
{{- $s := .Values.settings -}}
{{- $faults := list -}}
{{- range list (list "metrics" $s.metricsBindAddress $s.metricsPort 8080) (list "healthProbe" $s.healthProbeBindAddress $s.healthProbePort 8081) -}}
{{- $address := index . 1 | default "0" -}}
{{- $port := int (index . 2 | default (index . 3)) -}}
{{- if and (ne $address "0") (not (hasSuffix (printf ":%d" $port) $address)) -}}
{{- $faults = append $faults (printf "settings.%sBindAddress: got %s, its port must be that of settings.%sPort, %d" (index . 0) $address (index . 0) $port) -}}
{{- end -}}
{{- end -}}
{{- if and (ne (toString $s.metricsBindAddress) "0") (eq (int ($s.metricsPort | default 8080)) (int ($s.healthProbePort | default 8081))) -}}
{{- $faults = append $faults (printf "settings.metricsPort: got %d, which is settings.healthProbePort, too: choose another" (int ($s.metricsPort | default 8080))) -}}
{{- end -}}
{{- with $s.schedulerConfig -}}
{{- $config := fromYaml . -}}
{{- if or (hasKey $config "Error") (omit $config "podTopologySpread") -}}
{{- $faults = append $faults (printf "settings.schedulerConfig: must be YAML with podTopologySpread.defaultConstraints, as text; got %s" (trunc 200 .)) -}}
{{- end -}}
{{- end -}}
{{ join "\n" $faults }}
{{- end -}}

{{/* Monitors that could not read what they are made for, and probes that the kubelet could not ask. */}}
{{- define "nap.monitorFaults" -}}
{{- $s := .Values.settings -}}
{{- $m := .Values.metrics -}}
{{- $faults := list -}}
{{- $loopback := "^(127[.][0-9.]*|localhost|\\[::1\\]):" -}}
{{- if regexMatch $loopback ($s.healthProbeBindAddress | default "") -}}
{{- $faults = append $faults (printf "settings.healthProbeBindAddress: got %s, where the kubelet cannot ask whether the pod is healthy: leave it out, or leave the host empty" $s.healthProbeBindAddress) -}}
{{- end -}}
{{- range $name, $on := dict "metrics.podMonitor.enabled" $m.podMonitor.enabled "metrics.serviceMonitor.enabled" $m.serviceMonitor.enabled -}}
{{- if and $on (not $.Values.shadow.enabled) -}}
{{- if eq (toString $s.metricsBindAddress) "0" -}}
{{- $faults = append $faults (printf "%s: true with settings.metricsBindAddress=0, which serves no metrics: leave one of them out" $name) -}}
{{- else if regexMatch $loopback ($s.metricsBindAddress | default "") -}}
{{- $faults = append $faults (printf "%s: true with settings.metricsBindAddress=%s, which a monitor cannot reach: leave one of them out" $name $s.metricsBindAddress) -}}
{{- end -}}
{{- if and $m.secure (not $m.reader.create) (not $m.reader.secret) -}}
{{- $faults = append $faults (printf "metrics.reader.secret: must be set with metrics.reader.create=false and %s=true: a Secret with the key token, which the monitor gives" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $m.podMonitor.enabled $m.serviceMonitor.enabled -}}
{{- $faults = append $faults "metrics.serviceMonitor.enabled: true with metrics.podMonitor.enabled=true: every series would be there twice, and alerts that sum would count double; leave one of them out" -}}
{{- end -}}
{{ join "\n" $faults }}
{{- end -}}

{{/* Labels and annotations with keys that the chart sets itself: the object would have them twice. */}}
{{- define "nap.keyFaults" -}}
{{- $v := .Values -}}
{{- $faults := list -}}
{{- $own := list "helm.sh/chart" "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" -}}
{{- $use := list -}}
{{- $account := list -}}
{{- if and $v.workloadIdentity.enabled (not $v.shadow.enabled) -}}
{{- $use = list "azure.workload.identity/use" -}}
{{- $account = list "azure.workload.identity/client-id" -}}
{{- if $v.workloadIdentity.tenantId }}{{ $account = append $account "azure.workload.identity/tenant-id" }}{{ end -}}
{{- end -}}
{{- range list
  (list "additionalLabels" $v.additionalLabels (concat $own $use))
  (list "podLabels" $v.podLabels (concat $own $use))
  (list "podAnnotations" $v.podAnnotations (list "kubectl.kubernetes.io/default-container"))
  (list "serviceAccount.annotations" $v.serviceAccount.annotations $account)
  (list "metrics.monitorLabels" $v.metrics.monitorLabels $own)
  (list "rules.labels" $v.rules.labels $own)
  (list "dashboards.labels" $v.dashboards.labels $own)
-}}
{{- $name := index . 0 -}}
{{- $taken := index . 2 -}}
{{- range $key := keys (index . 1 | default dict) | sortAlpha -}}
{{- if has $key $taken }}{{ $faults = append $faults (printf "%s: has the key %s, which the chart sets itself: leave it out" $name $key) }}{{ end -}}
{{- end -}}
{{- end -}}
{{ join "\n" $faults }}
{{- end -}}

{{/*
Values which templates read into, and that are absent: --reuse-values of Helm keeps the values
of the release before, without what is new in the chart. Each template asks for this first,
since without them it would end in an error that says nothing of it.
*/}}
{{- define "nap.complete" -}}
{{- $absent := list -}}
{{- range $path := list
  "image" "replicas" "settings" "shadow" "workloadIdentity" "bootstrapTokenSecret" "prices" "admission" "admission.requests"
  "admission.defaultRequests" "admission.exemptNamespaces" "serviceAccount" "metrics" "metrics.secure" "metrics.podMonitor"
  "metrics.serviceMonitor" "metrics.reader" "rules" "dashboards" "networkPolicy"
-}}
{{- $value := $.Values -}}
{{- range splitList "." $path }}{{ $value = index ($value | default dict) . }}{{ end -}}
{{- if kindIs "invalid" $value }}{{ $absent = append $absent $path }}{{ end -}}
{{- end -}}
{{- if $absent }}{{ fail (printf "\n  %s: not set, and the chart needs it: leave the chart's own value; an upgrade with --reuse-values lacks what is new in the chart: use --reset-then-reuse-values (Helm 3.14 and later)" (join ", " $absent)) }}{{ end -}}
{{- end -}}

{{/* Values that contradict each other, each with what to do. */}}
{{- define "nap.check" -}}
{{- $faults := list -}}
{{- $s := .Values.settings -}}
{{- if not .Values.image.repository }}{{ $faults = append $faults "image.repository: must be set: where the image of `make image` was pushed to" }}{{ end -}}
{{- if not .Values.shadow.enabled }}
{{- range $name, $what := dict "clusterName" "the name of the AKS cluster" "armResourceGroup" "the resource group of the AKS cluster" "azureSubscriptionId" "the subscription of the AKS cluster" -}}
{{- if not (get $s $name) }}{{ $faults = append $faults (printf "settings.%s: must be set: %s" $name $what) }}{{ end -}}
{{- end -}}
{{- if and .Values.workloadIdentity.enabled (not .Values.shadow.enabled) (not .Values.workloadIdentity.clientId) }}{{ $faults = append $faults "workloadIdentity.clientId: must be set: the client id of the managed identity of nap; or set workloadIdentity.enabled=false where the pods sign in otherwise" }}{{ end -}}
{{- end -}}
{{- if and .Values.shadow.enabled (eq (toString $s.engine) "karpenter") }}{{ $faults = append $faults "settings.engine: karpenter with shadow.enabled=true: a shadow says what nap's own planner would cost; leave one of them out" }}{{ end -}}
{{- if and $s.disableLeaderElection (gt (int .Values.replicas) 1) }}{{ $faults = append $faults (printf "replicas: %d with settings.disableLeaderElection=true: every replica would buy; set replicas=1" (int .Values.replicas)) }}{{ end -}}
{{- if and .Values.bootstrapTokenSecret.name $s.bootstrapTokens (ne (toString $s.bootstrapTokens) "given") }}{{ $faults = append $faults (printf "bootstrapTokenSecret.name: is set and settings.bootstrapTokens is %s: leave one of them out" $s.bootstrapTokens) }}{{ end -}}
{{- if and (eq (toString $s.bootstrapTokens) "given") (not .Values.bootstrapTokenSecret.name) }}{{ $faults = append $faults "bootstrapTokenSecret.name: must be set with settings.bootstrapTokens=given: the Secret with the token" }}{{ end -}}
{{- if and $s.enableProfiling (not .Values.metrics.secure) }}{{ $faults = append $faults "settings.enableProfiling: true with metrics.secure=false: profiles hold what is in memory, tokens too; set metrics.secure=true" }}{{ end -}}
{{- if and $s.pricesFile .Values.prices.configMap }}{{ $faults = append $faults "settings.pricesFile: is set and prices.configMap too: leave one of them out" }}{{ end -}}
{{- if and .Values.metrics.certificateSecret (not .Values.metrics.secure) }}{{ $faults = append $faults "metrics.certificateSecret: is set and metrics.secure is false: set metrics.secure=true, or leave it out" }}{{ end -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}{{ $faults = append $faults "serviceAccount.name: must be set with serviceAccount.create=false" }}{{ end -}}
{{- if and (eq .Values.admission.requests "Default") (not (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version)) }}{{ $faults = append $faults (printf "admission.requests: Default needs Kubernetes 1.36, whose API server changes objects by policies; this is %s: use Warn or Deny" .Capabilities.KubeVersion.Version) }}{{ end -}}
{{- range list "nap.durationFaults" "nap.azureFaults" "nap.endpointFaults" "nap.monitorFaults" "nap.keyFaults" -}}
{{- $faults = concat $faults (compact (splitList "\n" (include . $))) -}}
{{- end -}}
{{- if $faults }}{{ fail (printf "\n  %s" (join "\n  " $faults)) }}{{ end -}}
{{- end -}}
