{{- /* The name of all objects: that of the release. */ -}}
{{- define "sallyport.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* The labels of an object: a list of the root context and the component. */ -}}
{{- define "sallyport.labels" -}}
{{ include "sallyport.selector" . }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end -}}

{{- define "sallyport.selector" -}}
app.kubernetes.io/name: sallyport
app.kubernetes.io/instance: {{ (index . 0).Release.Name | trunc 63 | quote }}
app.kubernetes.io/component: {{ index . 1 | quote }}
{{- end -}}

{{- define "sallyport.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag }}{{ end -}}
{{- end -}}
{{- end -}}

{{- /* What does not go together. */ -}}
{{- define "sallyport.check" -}}
{{- $v := .Values -}}
{{- if and (not $v.nats.url) (or $v.workers.pools $v.gateway.useWorkers) -}}
{{- fail "workers need nats.url: workers and gateways meet at the NATS servers" -}}
{{- end -}}
{{- if and (not $v.nats.url) (or $v.gateway.autoscaling.enabled (gt (int $v.gateway.replicas) 1)) -}}
{{- fail "more than one gateway needs nats.url: each would have records of its own" -}}
{{- end -}}
{{- if and (not $v.nats.url) (not $v.gateway.persistence.enabled) -}}
{{- fail "gateway.persistence.enabled: false needs nats.url: the records would end with the pod" -}}
{{- end -}}
{{- if not (or $v.gateway.enabled $v.workers.pools) -}}
{{- fail "gateway.enabled is false and workers.pools is empty: there is nothing to install" -}}
{{- end -}}
{{- if gt (int $v.gateway.autoscaling.minReplicas) (int $v.gateway.autoscaling.maxReplicas) -}}
{{- fail "gateway.autoscaling.minReplicas is greater than maxReplicas" -}}
{{- end -}}
{{- end -}}

{{- /* Not empty where the gateways start the sandboxes of programs. */ -}}
{{- define "sallyport.starts" -}}
{{- if not (or .Values.workers.pools .Values.gateway.useWorkers) }}true{{ end -}}
{{- end -}}

{{- /* upstreams.yaml: the settings, with what nats and workers say. */ -}}
{{- define "sallyport.settings" -}}
{{- $settings := deepCopy .Values.gateway.settings -}}
{{- if .Values.nats.url -}}
{{- $store := dict "url" .Values.nats.url "replicas" (int .Values.nats.replicas) "prefix" .Values.nats.prefix -}}
{{- if .Values.nats.existingSecret }}{{ $_ := set $store "creds" "/etc/sallyport-nats/gateway.creds" }}{{ end -}}
{{- if and .Values.nats.existingSecret .Values.nats.sealed }}{{ $_ := set $store "key" "/etc/sallyport-nats/seal.key" }}{{ end -}}
{{- if .Values.nats.caConfigMap }}{{ $_ := set $store "tls" (dict "ca" "/etc/sallyport-ca/ca.pem") }}{{ end -}}
{{- $_ := set $settings "store" $store -}}
{{- end -}}
{{- if not (include "sallyport.starts" .) -}}
{{- $_ := set $settings "sandbox" (merge (dict "remote" "workers") (get $settings "sandbox" | default dict)) -}}
{{- end -}}
{{- $name := include "sallyport.name" . -}}
{{- $own := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- $http := get $settings "http" | default dict -}}
{{- $_ := set $http "hosts" (concat (get $http "hosts" | default list) $own | uniq) -}}
{{- if .Values.gateway.serviceMonitor.enabled -}}
{{- $_ := set $http "tokens" (merge (dict "service-monitor" "${SERVICE_MONITOR_TOKEN}") (get $http "tokens" | default dict)) -}}
{{- $_ := set $http "metrics" (append (get $http "metrics" | default list) "service-monitor" | uniq) -}}
{{- end -}}
{{- $_ := set $settings "http" $http -}}
{{- toYaml $settings -}}
{{- end -}}

{{- /* The ports of nats.url, one a line. */ -}}
{{- define "sallyport.natsPorts" -}}
{{- $ports := list -}}
{{- range splitList "," .Values.nats.url -}}
{{- $port := regexFind ":[0-9]+$" (trim . | trimSuffix "/") | trimPrefix ":" | default "4222" -}}
{{- $ports = append $ports $port -}}
{{- end -}}
{{- $ports | uniq | join "\n" -}}
{{- end -}}

{{- /* The security of a pod that starts sandboxes (true) or does not. */ -}}
{{- define "sallyport.podSecurity" -}}
runAsNonRoot: true
runAsUser: 990
runAsGroup: 990
fsGroup: 990
fsGroupChangePolicy: OnRootMismatch
{{- if . }}
# gVisor needs unshare, mount and pivot_root, and applies a stricter filter to programs.
seccompProfile: {type: Unconfined}
appArmorProfile: {type: Unconfined}
{{- else }}
seccompProfile: {type: RuntimeDefault}
{{- end }}
{{- end -}}

{{- define "sallyport.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- /* What the image also sets. */ -}}
{{- define "sallyport.environment" -}}
- {name: HOME, value: /data}
- {name: XDG_CACHE_HOME, value: /data/cache}
- {name: XDG_RUNTIME_DIR, value: /run/sallyport}
{{- end -}}

{{- /* Where processes write apart from the data directory. */ -}}
{{- define "sallyport.scratchMounts" -}}
- {name: scratch, mountPath: /tmp, subPath: tmp}
- {name: scratch, mountPath: /run/sallyport, subPath: run}
{{- end -}}

{{- define "sallyport.metric" -}}
- type: External
  external:
    metric:
      name: {{ .name }}
      {{- with .selector }}
      selector: {matchLabels: {{ toJson . }}}
      {{- end }}
    target: {type: AverageValue, averageValue: {{ .target | quote }}}
{{- end -}}
