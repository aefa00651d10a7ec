{{- define "kerf.name" -}}
{{ .Values.nameOverride | default .Release.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "kerf.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "kerf.name" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end }}

{{- define "kerf.selector" -}}
app.kubernetes.io/name: kerf
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "kerf.labels" -}}
{{ include "kerf.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "kerf.metadata" -}}
labels:
  {{- include "kerf.labels" . | nindent 2 }}
{{- with .Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "kerf.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* Names of the variables that controller.env sets itself. */}}
{{- define "kerf.ownEnv" -}}
{{- $names := list }}
{{- range .Values.controller.env }}{{ $names = append $names .name }}{{ end }}
{{- $names | toJson }}
{{- end }}

{{- define "kerf.tokenFile" -}}
/var/run/secrets/ack.alibabacloud.com/rrsa-tokens/token
{{- end }}

{{/* "true" where a token for RRSA is mounted: by its own values, or by the variables that other providers' charts take. */}}
{{- define "kerf.hasToken" -}}
{{- $own := include "kerf.ownEnv" . | fromJsonArray }}
{{- if and .Values.credentials.rrsa.mountToken (or .Values.credentials.rrsa.roleARN (has "ALIBABA_CLOUD_ROLE_ARN" $own)) -}}
true
{{- end -}}
{{- end }}

{{- define "kerf.featureGates" -}}
NodeRepair={{ .Values.settings.featureGates.nodeRepair }},ReservedCapacity={{ .Values.settings.featureGates.reservedCapacity }},NodeOverlay={{ .Values.settings.featureGates.nodeOverlay }},StaticCapacity={{ .Values.settings.featureGates.staticCapacity }},CapacityBuffer={{ .Values.settings.featureGates.capacityBuffer }},SpotToSpotConsolidation={{ .Values.settings.featureGates.spotToSpotConsolidation }}
{{- end }}

{{/* What has a value goes into the environment, unless controller.env has it. */}}
{{- define "kerf.env" -}}
{{- $own := include "kerf.ownEnv" . | fromJsonArray }}
{{- $s := .Values.settings }}
{{- $variables := list
  (list "CLUSTER_ID" $s.clusterID)
  (list "CLUSTER_NAME" $s.clusterName)
  (list "CLUSTER_ENDPOINT" $s.clusterEndpoint)
  (list "ALIBABA_CLOUD_REGION" $s.region)
  (list "DEFAULT_NODE_ROLE" $s.defaultNodeRole)
  (list "ALIBABA_CLOUD_NETWORK" $s.network)
  (list "BATCH_IDLE_DURATION" $s.batchIdleDuration)
  (list "BATCH_MAX_DURATION" $s.batchMaxDuration)
  (list "PREFERENCE_POLICY" $s.preferencePolicy)
  (list "MIN_VALUES_POLICY" $s.minValuesPolicy)
  (list "SCHEDULER_CONFIG" $s.schedulerConfig)
  (list "IGNORE_DRA_REQUESTS" $s.ignoreDRARequests)
  (list "VM_MEMORY_OVERHEAD_PERCENT" $s.vmMemoryOverheadPercent)
  (list "PRICE_CATALOG" $s.priceCatalog)
  (list "ACCOUNT_DISCOUNT_PERCENT" $s.accountDiscountPercent)
  (list "DISABLE_CLUSTER_STATE_OBSERVABILITY" $s.disableClusterStateObservability)
  (list "POD_METRICS" $s.podMetrics)
  (list "DISRUPTION_POLL_DURATION" $s.disruptionPollDuration)
  (list "CONSOLIDATION_QUIET_DURATION" $s.consolidationQuietDuration)
  (list "INSTANCE_TYPE_DRIFT_DELAY" $s.instanceTypeDriftDelay)
  (list "GARBAGE_COLLECTION_POLL_DURATION" $s.garbageCollectionPollDuration)
  (list "ORPHAN_GRACE_DURATION" $s.orphanGraceDuration)
  (list "INTERRUPTION_POLL_DURATION" $s.interruptionPollDuration)
  (list "INTERRUPTION_SOURCES" $s.interruptionSources)
  (list "PRICE_POLL_DURATION" $s.pricePollDuration)
  (list "LAUNCH_TIMEOUT" $s.launchTimeout)
  (list "REGISTRATION_TIMEOUT" $s.registrationTimeout)
  (list "INITIALIZATION_TIMEOUT" $s.initializationTimeout)
  (list "EXPIRATION_JITTER" $s.expirationJitter)
  (list "EXPIRATION_WITHIN_BUDGETS" $s.expirationWithinBudgets)
  (list "NODE_REPAIR_POLICIES" (join "," $s.nodeRepairPolicies))
  (list "NODE_REPAIR_THRESHOLD_PERCENT" $s.nodeRepairThresholdPercent)
  (list "FEATURE_GATES" (include "kerf.featureGates" .))
  (list "METRICS_PORT" .Values.controller.metrics.port)
  (list "HEALTH_PROBE_PORT" .Values.controller.healthProbe.port)
  (list "ENABLE_PROFILING" .Values.controller.enableProfiling)
  (list "LOG_LEVEL" .Values.logging.level)
  (list "LOG_FORMAT" .Values.logging.format)
  (list "LOG_OUTPUT_PATHS" (join "," .Values.logging.outputPaths))
  (list "LOG_ERROR_OUTPUT_PATHS" (join "," .Values.logging.errorOutputPaths))
  (list "KUBE_CLIENT_QPS" .Values.kubeClient.qps)
  (list "KUBE_CLIENT_BURST" .Values.kubeClient.burst)
  (list "LEADER_ELECTION_NAME" .Values.leaderElection.name)
  (list "KERF_REGISTRY_CA_BUNDLE" (ternary "" "/etc/kerf/registry-ca/ca.crt" (empty .Values.policies.registryCAConfigMap)))
  (list "KERF_POLICY_RECORD_EVERY" .Values.policies.recordEvery)
  (list "ALIBABA_CLOUD_ROLE_ARN" .Values.credentials.rrsa.roleARN)
  (list "ALIBABA_CLOUD_OIDC_PROVIDER_ARN" .Values.credentials.rrsa.oidcProviderARN)
  (list "ALIBABA_CLOUD_OIDC_TOKEN_FILE" (ternary (include "kerf.tokenFile" .) "" (not (empty .Values.credentials.rrsa.roleARN))))
  (list "ALIBABA_CLOUD_ECS_METADATA" .Values.credentials.ecsRole)
}}
{{- range $variables }}
{{- $name := index . 0 }}
{{- $value := index . 1 | toString }}
{{- if and $value (not (has $name $own)) }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
{{- if .Values.credentials.secretName }}
{{- range list (list "ALIBABA_CLOUD_ACCESS_KEY_ID" .Values.credentials.accessKeyIDKey) (list "ALIBABA_CLOUD_ACCESS_KEY_SECRET" .Values.credentials.accessKeySecretKey) }}
{{- if not (has (index . 0) $own) }}
- name: {{ index . 0 }}
  valueFrom:
    secretKeyRef:
      name: {{ $.Values.credentials.secretName }}
      key: {{ index . 1 }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.controller.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* What would start and then do nothing is refused here, with the value to set. */}}
{{- define "kerf.check" -}}
{{- $own := include "kerf.ownEnv" . | fromJsonArray }}
{{- if not (or .Values.settings.clusterID .Values.settings.clusterName (has "CLUSTER_ID" $own) (has "CLUSTER_NAME" $own)) }}
{{- fail "settings.clusterID is needed (or settings.clusterName for a self-managed cluster): it tells this cluster's instances from others'" }}
{{- end }}
{{- if not (or .Values.settings.region (has "ALIBABA_CLOUD_REGION" $own)) }}
{{- fail "settings.region is needed, for example cn-hangzhou" }}
{{- end }}
{{- if and .Values.credentials.rrsa.roleARN (not .Values.credentials.rrsa.oidcProviderARN) }}
{{- fail "credentials.rrsa.oidcProviderARN is needed together with credentials.rrsa.roleARN" }}
{{- end }}
{{- end }}
