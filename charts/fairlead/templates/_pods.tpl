{{- /* What all pods of the control plane have in common. The first three take a dictionary of root and component. */ -}}

{{- define "fairlead.pod" -}}
serviceAccountName: {{ .account | default (include "fairlead.serviceAccount" .root) }}
automountServiceAccountToken: {{ .token | default false }}
enableServiceLinks: false
{{ include "fairlead.podSecurity" . }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- if has .component (list "beat" "test" "waker") }}
{{- with .root.Values.extraInitContainers }}
initContainers: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Security context of a pod. Takes a dictionary of root, and of user for images with a user of their own. */ -}}
{{- define "fairlead.podSecurity" -}}
{{- $given := .root.Values.podSecurityContext -}}
securityContext:
  runAsNonRoot: true
  {{- range $id := list "runAsUser" "runAsGroup" "fsGroup" }}
  {{- with index $given $id }}
  {{ $id }}: {{ $.user | default . | int64 }}
  {{- end }}
  {{- end }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
  {{- with omit $given "runAsUser" "runAsGroup" "fsGroup" }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- define "fairlead.podLabels" -}}
{{ include "fairlead.selector" . }}
{{- with merge dict .root.Values.podLabels .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "fairlead.podMetadata" -}}
labels: {{- include "fairlead.podLabels" . | nindent 2 }}
{{- with include "fairlead.podAnnotations" . }}
annotations: {{- trim . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* What a Deployment's pod ends with: sidecars after its own container, volumes, and how its pods spread. */ -}}
{{- define "fairlead.podEnd" -}}
{{- with .root.Values.extraContainers }}
{{- toYaml . | indent 2 }}
{{ end -}}
volumes: {{- include "fairlead.volumes" . | nindent 2 }}
{{- $selector := dict "matchLabels" (include "fairlead.selector" . | fromYaml) }}
{{- if .root.Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range .root.Values.topologySpreadConstraints }}
  {{- list (merge (deepCopy .) (dict "labelSelector" $selector)) | toYaml | nindent 2 }}
  {{- end }}
{{- else if has .component (list "web" "worker" "beat" "waker") }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "fairlead.selector" . | nindent 8 }}
{{- end }}
{{- end -}}

{{- /* Annotations of pods, each a line; the password's makes new pods, which read the broker's address with it. */ -}}
{{- define "fairlead.podAnnotations" -}}
{{- if and (has .component (list "web" "worker" "beat" "watcher" "usage-collector")) (eq (include "fairlead.redisPassword" .root) "required") }}
fairlead/redis-password: required
{{- end }}
{{- with merge dict .root.Values.podAnnotations .root.Values.commonAnnotations }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "fairlead.container" -}}
image: {{ include "fairlead.image" (dict "root" .root "image" .root.Values.image) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{ include "fairlead.secure" . }}
env: {{- include "fairlead.allEnv" . | nindent 2 }}
{{- with .root.Values.envFrom }}
envFrom: {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  {{- if ne .component "waker" }}
  - {name: secrets, mountPath: /etc/fairlead/secrets, readOnly: true}
  {{- end }}
  - {name: tmp, mountPath: /tmp}
  - {name: home, mountPath: /var/lib/fairlead}
  {{- if .files }}
  - {name: artifacts, mountPath: /var/lib/fairlead/artifacts}
  {{- end }}
  {{- if and (eq .component "usage-collector") .root.Values.usage.collector.tlsSecret }}
  - {name: tls, mountPath: /etc/fairlead/tls, readOnly: true}
  {{- end }}
  {{- if include "fairlead.caBundle" .root }}
  - {name: ca-bundle, mountPath: /etc/fairlead/ca-bundle, readOnly: true}
  {{- end }}
  {{- if and .files .root.Values.kubeconfigSecret }}
  - {name: kubeconfigs, mountPath: /etc/fairlead/kubeconfigs, readOnly: true}
  {{- end }}
  {{- with .root.Values.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* The volume's source of the CA bundle; empty without one. */ -}}
{{- define "fairlead.caBundle" -}}
{{- with .Values.caBundle -}}
{{- if and .configMap .secret -}}
{{- fail "caBundle.configMap and caBundle.secret are both set; leave one of them" -}}
{{- end -}}
{{- $items := printf "items: [{key: %s, path: ca.crt}]" (quote .key) -}}
{{- if .configMap }}configMap: {name: {{ .configMap | quote }}, {{ $items }}}{{ end -}}
{{- if .secret }}secret: {secretName: {{ .secret | quote }}, {{ $items }}}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.volumes" -}}
{{- if ne .component "waker" }}
- name: secrets
  {{- if .owner }}
  projected:
    sources:
      - secret:
          name: {{ include "fairlead.secretName" .root }}
          items:
            - {key: {{ include "fairlead.key" (dict "root" .root "key" "secret-key") }}, path: secret-key}
            - {key: {{ include "fairlead.key" (dict "root" .root "key" "broker-url") }}, path: broker-url}
      - secret: {name: {{ .owner }}, items: [{key: {{ include "fairlead.key" (dict "root" .root "key" "database-url") }}, path: database-url}]}
  {{- else }}
  secret:
    secretName: {{ include "fairlead.secretName" .root }}
    items:
      - {key: {{ include "fairlead.key" (dict "root" .root "key" "secret-key") }}, path: secret-key}
      - {key: {{ include "fairlead.key" (dict "root" .root "key" "database-url") }}, path: database-url}
      - {key: {{ include "fairlead.key" (dict "root" .root "key" "broker-url") }}, path: broker-url}
  {{- end }}
{{- end }}
{{- if eq .component "usage-collector" }}
{{- with .root.Values.usage.collector.tlsSecret }}
- name: tls
  secret: {secretName: {{ . }}, items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]}
{{- end }}
{{- end }}
- name: tmp
  emptyDir: {{ include "fairlead.emptyDir" (dict "root" .root "size" "2Gi") }}
- name: home
  {{- if .files }}
  persistentVolumeClaim: {claimName: {{ include "fairlead.claim" (dict "root" .root "which" "state") }}}
- name: artifacts
  persistentVolumeClaim: {claimName: {{ include "fairlead.claim" (dict "root" .root "which" "artifacts") }}}
  {{- else }}
  emptyDir: {{ include "fairlead.emptyDir" (dict "root" .root "size" "1Gi") }}
  {{- end }}
{{- with include "fairlead.caBundle" .root }}
- name: ca-bundle
  {{ . }}
{{- end }}
{{- if .files }}
{{- with .root.Values.kubeconfigSecret }}
- {name: kubeconfigs, secret: {secretName: {{ . | quote }}}}
{{- end }}
{{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "fairlead.secure" -}}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  readOnlyRootFilesystem: true
  runAsNonRoot: true
  {{- with .root.Values.containerSecurityContext }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{- /* An init container that ends when the database has every migration of this image: new code never meets old tables. */ -}}
{{- define "fairlead.await" -}}
{{- with .root.Values.extraInitContainers }}
{{- toYaml . }}
{{ end -}}
- name: await-migrations
  command: [python, -m, django, wait_for, migrations]
  {{- include "fairlead.container" . | nindent 2 }}
  resources:
    requests: {cpu: 20m, memory: 192Mi}
    limits: {memory: 512Mi}
{{- end -}}

{{- /* The chart's own variables, and those of `extraEnv`, which may replace none of them. */ -}}
{{- define "fairlead.allEnv" -}}
{{- $own := include (ternary "fairlead.wakerEnv" "fairlead.env" (eq .component "waker")) . -}}
{{- $own }}
{{- with .root.Values.extraEnv }}
{{- $names := list }}
{{- range fromYamlArray $own }}{{ $names = append $names .name }}{{ end }}
{{- range . }}
{{- if has .name $names }}
{{- fail (printf "extraEnv has %s, which the chart or settings set already; change it by its value, or by settings" .name) }}
{{- end }}
{{- $names = append $names .name }}
{{- end }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Proxies and authorities of outgoing connections; never a proxy to the cluster's own addresses. */ -}}
{{- define "fairlead.outgoing" -}}
{{- with .Values.proxy }}
{{- if or .httpProxy .httpsProxy .noProxy }}
{{- range $name, $value := dict "HTTP_PROXY" .httpProxy "HTTPS_PROXY" .httpsProxy }}
{{- if $value }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}
- {name: NO_PROXY, value: {{ printf "localhost,127.0.0.1,$(KUBERNETES_SERVICE_HOST),.svc,.svc.cluster.local,%s,%s" (include "fairlead.fullname" $) .noProxy | trimSuffix "," | quote }}}
{{- end }}
{{- end }}
{{- if include "fairlead.caBundle" . }}
- {name: SSL_CERT_FILE, value: /etc/fairlead/ca-bundle/ca.crt}
- {name: REQUESTS_CA_BUNDLE, value: /etc/fairlead/ca-bundle/ca.crt}
{{- end }}
{{- end -}}

{{- /* The waker has no secret of the control plane, since gateways reach it: it signs nothing, so that any key does. */ -}}
{{- define "fairlead.wakerEnv" -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- name: FAIRLEAD_SECRET_KEY
  valueFrom: {fieldRef: {fieldPath: metadata.uid}}
- {name: DJANGO_SETTINGS_MODULE, value: fairlead.settings}
- {name: PYTHONUNBUFFERED, value: "1"}
- {name: FAIRLEAD_HOME, value: /var/lib/fairlead}
- {name: FAIRLEAD_WAKER_ADDRESS, value: "$(POD_IP):9002"}
- {name: FAIRLEAD_WAKER_METRICS_ADDRESS, value: "$(POD_IP):8082"}
- {name: FAIRLEAD_WAKER_NAMESPACES, value: {{ include "fairlead.namespaces" .root | fromJsonArray | join "," | quote }}}
{{- if and (eq (include "fairlead.logs" .root) "json") (not (hasKey .root.Values.settings "FAIRLEAD_LOG_FORMAT")) }}
- {name: FAIRLEAD_LOG_FORMAT, value: json}
{{- end }}
{{- range $key, $value := .root.Values.settings }}
- {name: {{ $key }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end -}}

{{- define "fairlead.env" -}}
{{- $name := include "fairlead.fullname" .root -}}
{{- $host := printf "%s.%s" $name .root.Release.Namespace -}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- {name: DJANGO_SETTINGS_MODULE, value: fairlead.settings}
- {name: PYTHONUNBUFFERED, value: "1"}
- {name: FAIRLEAD_HOME, value: /var/lib/fairlead}
- {name: FAIRLEAD_ARTIFACTS_FOLDER, value: /var/lib/fairlead/artifacts}
- {name: FAIRLEAD_SECRET_KEY_FILE, value: /etc/fairlead/secrets/secret-key}
- name: FAIRLEAD_SECRET_KEY_FALLBACKS
  valueFrom: {secretKeyRef: {name: {{ include "fairlead.secretName" .root }}, key: {{ include "fairlead.key" (dict "root" .root "key" "secret-key-fallbacks") }}, optional: true}}
- {name: FAIRLEAD_DATABASE_URL_FILE, value: /etc/fairlead/secrets/database-url}
- {name: FAIRLEAD_BROKER_URL_FILE, value: /etc/fairlead/secrets/broker-url}
- {name: FAIRLEAD_URL, value: {{ .root.Values.url | quote }}}
- {name: FAIRLEAD_ALLOWED_HOSTS, value: "localhost,127.0.0.1,$(POD_IP),{{ $name }},{{ $host }},{{ $host }}.svc,{{ $host }}.svc.cluster.local"}
{{- if .root.Values.cluster.enabled }}
- {name: FAIRLEAD_DEFAULT_CLUSTER, value: {{ .root.Values.cluster.name }}}
- {name: FAIRLEAD_GATEWAY_URL, value: {{ .root.Values.cluster.gateway.url | quote }}}
{{- end }}
{{- if and (include "fairlead.defaultsOf" .root) (not (hasKey .root.Values.settings "FAIRLEAD_DEFAULT_ACCESS")) }}
- {name: FAIRLEAD_DEFAULT_ACCESS, value: authenticated}
{{- end }}
{{- if .files }}
{{- include "fairlead.prometheus" .root.Values.prometheus }}
{{- with include "fairlead.registries" .root }}
- {name: FAIRLEAD_ALLOWED_REGISTRIES, value: {{ . | quote }}}
{{- end }}
{{- if and (include "fairlead.defaultsOf" .root) (not (hasKey .root.Values.settings "FAIRLEAD_EXEC_PLUGINS")) }}
- {name: FAIRLEAD_EXEC_PLUGINS, value: ""}
{{- end }}
{{- if .root.Values.kubeconfigSecret }}
{{- if hasKey .root.Values.settings "FAIRLEAD_KUBECONFIG_FOLDER" }}
{{- fail "kubeconfigSecret and settings.FAIRLEAD_KUBECONFIG_FOLDER are both set; leave one of them" }}
{{- end }}
- {name: FAIRLEAD_KUBECONFIG_FOLDER, value: /etc/fairlead/kubeconfigs}
{{- end }}
{{- end }}
{{- include "fairlead.outgoing" .root }}
{{- include "fairlead.oidc" .root }}
{{- include "fairlead.audit" .root }}
{{- with .metrics }}
- {name: {{ . }}, value: "$(POD_IP):8082"}
{{- end }}
{{- if eq .component "usage-collector" }}
- {name: FAIRLEAD_USAGE_COLLECTOR_ADDRESS, value: "$(POD_IP):4317"}
- name: FAIRLEAD_USAGE_COLLECTOR_TOKEN
  valueFrom: {secretKeyRef: {name: {{ required "usage.collector.enabled is true, but usage.collector.existingSecret is empty; name the Secret with token" .root.Values.usage.collector.existingSecret }}, key: token}}
{{- if .root.Values.usage.collector.tlsSecret }}
- {name: FAIRLEAD_USAGE_COLLECTOR_TLS_FOLDER, value: /etc/fairlead/tls}
{{- end }}
{{- end }}
{{- if and (eq .component "web") (include "fairlead.defaultsOf" .root) (not (hasKey .root.Values.settings "FAIRLEAD_METRICS_ACCESS")) }}
- {name: FAIRLEAD_METRICS_ACCESS, value: token}
{{- end }}
{{- if and (eq (include "fairlead.logs" .root) "json") (not (hasKey .root.Values.settings "FAIRLEAD_LOG_FORMAT")) }}
- {name: FAIRLEAD_LOG_FORMAT, value: json}
{{- end }}
{{- with .root.Values.telemetry.otlp.endpoint }}
- {name: FAIRLEAD_OTLP_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- range $key, $value := .root.Values.settings }}
- {name: {{ $key }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end -}}

{{- /* Format of log lines: json, or text where that is said or the defaults of before hold. */ -}}
{{- define "fairlead.logs" -}}
{{- .Values.telemetry.logs | default (ternary "json" "text" (ne (include "fairlead.defaultsOf" .) "")) -}}
{{- end -}}

{{- /* Who measures rollouts; of web, worker and watcher, which have the files too. */ -}}
{{- define "fairlead.prometheus" -}}
{{- if .url }}
- {name: FAIRLEAD_PROMETHEUS_URL, value: {{ .url | quote }}}
{{- with .existingSecret }}
- name: FAIRLEAD_PROMETHEUS_TOKEN
  valueFrom: {secretKeyRef: {name: {{ . }}, key: token}}
- name: FAIRLEAD_PROMETHEUS_CA
  valueFrom: {secretKeyRef: {name: {{ . }}, key: ca.crt, optional: true}}
{{- end }}
{{- else if .existingSecret }}
{{- fail "prometheus.existingSecret is set, but prometheus.url is empty; say where Prometheus answers" }}
{{- end }}
{{- end -}}

{{- /* Of every pod: whichever it is, its system checks ask for the whole. */ -}}
{{- define "fairlead.oidc" -}}
{{- with .Values.oidc }}
{{- if .issuer }}
- {name: FAIRLEAD_OIDC_ISSUER, value: {{ .issuer | quote }}}
- {name: FAIRLEAD_OIDC_CLIENT_ID, value: {{ required "oidc.issuer is set, but oidc.clientId is empty; say what the provider calls this installation" .clientId | quote }}}
- name: FAIRLEAD_OIDC_CLIENT_SECRET
  valueFrom: {secretKeyRef: {name: {{ required "oidc.issuer is set, but oidc.existingSecret is empty; name the Secret with the client's secret" .existingSecret }}, key: {{ include "fairlead.key" (dict "root" $ "key" "client-secret") }}}}
{{- else if or .clientId .existingSecret }}
{{- fail "oidc.clientId or oidc.existingSecret is set, but oidc.issuer is empty; say which provider it is" }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Sinks of the audit log: the worker sends, beat starts that, and web shows how far it is. */ -}}
{{- define "fairlead.audit" -}}
{{- $key := include "fairlead.key" (dict "root" . "key" "webhook-secret") }}
{{- with .Values.audit }}
{{- $secret := .existingSecret }}
{{- with .syslog }}
- {name: FAIRLEAD_AUDIT_SYSLOG, value: {{ . | quote }}}
{{- end }}
{{- if and .existingSecret (hasPrefix "tls:" .syslog) }}
- name: FAIRLEAD_AUDIT_SYSLOG_CA
  valueFrom: {secretKeyRef: {name: {{ .existingSecret }}, key: ca.crt, optional: true}}
{{- end }}
{{- with .webhook }}
- {name: FAIRLEAD_AUDIT_WEBHOOK, value: {{ . | quote }}}
- name: FAIRLEAD_AUDIT_WEBHOOK_SECRET
  valueFrom: {secretKeyRef: {name: {{ required "audit.webhook is set, but audit.existingSecret is empty; name the Secret with webhook-secret" $secret }}, key: {{ $key }}}}
{{- end }}
{{- if and .existingSecret (not .syslog) (not .webhook) }}
{{- fail "audit.existingSecret is set, but audit.syslog and audit.webhook are empty; say where the audit log is sent" }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Probes of a process whose one page is its metrics. */ -}}
{{- define "fairlead.metricsProbes" -}}
startupProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 2
  failureThreshold: 300
  timeoutSeconds: 5
readinessProbe:
  httpGet: {path: /metrics, port: metrics}
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 20
  failureThreshold: 6
  timeoutSeconds: 5
{{- end -}}
