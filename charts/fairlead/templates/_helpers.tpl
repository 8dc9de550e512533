{{- define "fairlead.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* What pods are selected by; never changes. Takes a dictionary of root and component. */ -}}
{{- define "fairlead.selector" -}}
app.kubernetes.io/name: fairlead
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "fairlead.labels" -}}
{{ include "fairlead.selector" . }}
app.kubernetes.io/part-of: fairlead
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- /* Names of ClusterRoles belong to the whole cluster. */ -}}
{{- define "fairlead.clusterName" -}}
{{ .Release.Namespace }}-{{ include "fairlead.fullname" . }}
{{- end -}}

{{- define "fairlead.secretName" -}}
{{- if .Values.existingSecret -}}
{{ .Values.existingSecret }}
{{- else if and .Values.postgresql.enabled .Values.redis.enabled -}}
{{ include "fairlead.fullname" . }}
{{- else -}}
{{- fail "existingSecret is empty, but postgresql.enabled or redis.enabled is false; name a Secret with the keys secret-key, database-url and broker-url" -}}
{{- end -}}
{{- end -}}

{{- /* Takes a dictionary of root and image. */ -}}
{{- define "fairlead.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "fairlead.claim" -}}
{{- (index .root.Values.persistence .which).existingClaim | default (printf "%s-%s" (include "fairlead.fullname" .root) .which) -}}
{{- end -}}

{{- /* Whether the release was installed with namespaces of their own for models and Jobs, in closed networks; an upgrade of an earlier one keeps what that has. */ -}}
{{- define "fairlead.isSeparate" -}}
{{- if .Release.IsUpgrade -}}
{{- $account := lookup "v1" "ServiceAccount" .Release.Namespace (include "fairlead.fullname" .) | default dict -}}
{{- if eq (dig "metadata" "annotations" "fairlead/models" "" $account) "separate" -}}true{{- end -}}
{{- else -}}
true
{{- end -}}
{{- end -}}

{{- /* Namespace of models or Jobs where the values name none. Takes a dictionary of root and what. */ -}}
{{- define "fairlead.defaultNamespace" -}}
{{- ternary (printf "%s-%s" (include "fairlead.fullname" .root) .what) .root.Release.Namespace (eq (include "fairlead.isSeparate" .root) "true") -}}
{{- end -}}

{{- define "fairlead.namespaces" -}}
{{- .Values.cluster.namespaces | default (list (include "fairlead.defaultNamespace" (dict "root" . "what" "models"))) | toJson -}}
{{- end -}}

{{- define "fairlead.jobsNamespace" -}}
{{- dig "jobs" "namespace" (include "fairlead.defaultNamespace" (dict "root" . "what" "jobs")) .Values.cluster.file -}}
{{- end -}}

{{- /* Whether the network of models and Jobs is closed. */ -}}
{{- define "fairlead.isClosed" -}}
{{- $models := .Values.networkPolicy.models -}}
{{- if or (eq $models "closed") (and (eq $models "") .Values.networkPolicy.enabled (include "fairlead.isSeparate" .)) -}}
true
{{- else if hasKey .Values.cluster.file "network" -}}
{{- fail "cluster.file.network is set, but the network of models is open; set networkPolicy.models to closed" -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.host" -}}
{{- (urlParse .Values.url).hostname -}}
{{- end -}}

{{- /* The Secret with the web's certificate; empty where TLS does not end here. */ -}}
{{- define "fairlead.tlsSecret" -}}
{{- with .Values.expose.tls -}}
{{- .secretName | default (ternary (printf "%s-tls" (include "fairlead.fullname" $)) "" (ne .issuer.name "")) -}}
{{- end -}}
{{- end -}}
