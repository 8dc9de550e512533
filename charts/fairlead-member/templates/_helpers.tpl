{{- /* Takes a dictionary of root, and of labels. */ -}}
{{- define "member.labels" -}}
app.kubernetes.io/name: fairlead-member
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/part-of: fairlead
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Names of ClusterRoles belong to the whole cluster. */ -}}
{{- define "member.clusterName" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}
{{- end -}}

{{- define "member.subjects" -}}
- {kind: ServiceAccount, name: {{ .Values.serviceAccount.name }}, namespace: {{ .Release.Namespace }}}
{{- end -}}

{{- /* Roles bound in namespaces, as pairs of role and namespace in JSON. */ -}}
{{- define "member.bindings" -}}
{{- $roles := list "driver" "driver-access" -}}
{{- if eq .Values.reach "apiServer" }}{{ $roles = concat $roles (list "driver-metrics" "driver-replays") }}{{ end -}}
{{- if .Values.keda }}{{ $roles = append $roles "driver-keda" }}{{ end -}}
{{- if .Values.gpuClaims }}{{ $roles = append $roles "driver-claims" }}{{ end -}}
{{- if .Values.modelPools }}{{ $roles = append $roles "driver-pools" }}{{ end -}}
{{- if .Values.repartition.enabled }}{{ $roles = append $roles "driver-repartition-pods" }}{{ end -}}
{{- $bound := list -}}
{{- range $namespace := .Values.namespaces -}}
{{- range $role := $roles }}{{ $bound = append $bound (list $role $namespace) }}{{ end -}}
{{- end -}}
{{- if .Values.repartition.enabled }}{{ $bound = append $bound (list "driver-repartition-mig" .Values.repartition.namespace) }}{{ end -}}
{{- if and .Values.gpuClaims (not (has .Values.jobsNamespace .Values.namespaces)) }}{{ $bound = append $bound (list "driver-claims" .Values.jobsNamespace) }}{{ end -}}
{{- if .Values.closedNetwork }}{{ $bound = append $bound (list "driver-jobs-network" .Values.jobsNamespace) }}{{ end -}}
{{- append $bound (list "driver-jobs" .Values.jobsNamespace) | toJson -}}
{{- end -}}

{{- /* Roles bound once for the cluster, as JSON. */ -}}
{{- define "member.clusterBindings" -}}
{{- $roles := list "driver-gateways" "driver-identity" -}}
{{- if .Values.readNodes }}{{ $roles = append $roles "driver-nodes" }}{{ end -}}
{{- if .Values.gpuClaims }}{{ $roles = append $roles "driver-devices" }}{{ end -}}
{{- if .Values.repartition.enabled }}
{{- if not .Values.readNodes }}
{{- fail "repartition.enabled is true, but readNodes is false; cutting GPUs needs to list nodes, so set readNodes" }}
{{- end }}
{{- $roles = append $roles "driver-repartition" }}
{{- end -}}
{{- $roles | toJson -}}
{{- end -}}
