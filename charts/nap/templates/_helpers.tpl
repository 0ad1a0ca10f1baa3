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

{{- define "nap.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "nap.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
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
{{- if and $s.disableLeaderElection (gt (int .Values.replicas) 1) }}{{ $faults = append $faults (printf "replicas: %d with settings.disableLeaderElection=true: every replica would buy; set replicas=1" (int .Values.replicas)) }}{{ end -}}
{{- if and .Values.bootstrapTokenSecret.name $s.bootstrapTokens (ne (toString $s.bootstrapTokens) "given") }}{{ $faults = append $faults (printf "bootstrapTokenSecret.name: is set and settings.bootstrapTokens is %s: leave one of them out" $s.bootstrapTokens) }}{{ end -}}
{{- if and (eq (toString $s.bootstrapTokens) "given") (not .Values.bootstrapTokenSecret.name) }}{{ $faults = append $faults "bootstrapTokenSecret.name: must be set with settings.bootstrapTokens=given: the Secret with the token" }}{{ end -}}
{{- if and $s.enableProfiling (not .Values.metrics.secure) }}{{ $faults = append $faults "settings.enableProfiling: true with metrics.secure=false: profiles hold what is in memory, tokens too; set metrics.secure=true" }}{{ end -}}
{{- if and $s.pricesFile .Values.prices.configMap }}{{ $faults = append $faults "settings.pricesFile: is set and prices.configMap too: leave one of them out" }}{{ end -}}
{{- if and .Values.metrics.certificateSecret (not .Values.metrics.secure) }}{{ $faults = append $faults "metrics.certificateSecret: is set and metrics.secure is false: set metrics.secure=true, or leave it out" }}{{ end -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}{{ $faults = append $faults "serviceAccount.name: must be set with serviceAccount.create=false" }}{{ end -}}
{{- if and (eq .Values.admission.requests "Default") (not (semverCompare ">=1.36.0-0" .Capabilities.KubeVersion.Version)) }}{{ $faults = append $faults (printf "admission.requests: Default needs Kubernetes 1.36, whose API server changes objects by policies; this is %s: use Warn or Deny" .Capabilities.KubeVersion.Version) }}{{ end -}}
{{- if $faults }}{{ fail (printf "\n  %s" (join "\n  " $faults)) }}{{ end -}}
{{- end -}}
