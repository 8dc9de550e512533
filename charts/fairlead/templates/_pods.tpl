{{- /* What all pods of the control plane have in common. The first three take a dictionary of root and component. */ -}}

{{- define "fairlead.pod" -}}
serviceAccountName: {{ include "fairlead.fullname" .root }}
automountServiceAccountToken: {{ .token | default false }}
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
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
{{- end -}}

{{- /* Annotations of pods, each a line; the password's makes new pods, which read the broker's address with it. */ -}}
{{- define "fairlead.podAnnotations" -}}
{{- if eq (include "fairlead.redisPassword" .) "required" -}}
fairlead/redis-password: required
{{- end -}}
{{- end -}}

{{- define "fairlead.container" -}}
image: {{ include "fairlead.image" (dict "root" .root "image" .root.Values.image) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{ include "fairlead.secure" . }}
env: {{- include "fairlead.env" . | nindent 2 }}
volumeMounts:
  - {name: secrets, mountPath: /etc/fairlead/secrets, readOnly: true}
  - {name: tmp, mountPath: /tmp}
  - {name: home, mountPath: /var/lib/fairlead}
  {{- if .files }}
  - {name: artifacts, mountPath: /var/lib/fairlead/artifacts}
  {{- end }}
  {{- if and (eq .component "usage-collector") .root.Values.usage.collector.tlsSecret }}
  - {name: tls, mountPath: /etc/fairlead/tls, readOnly: true}
  {{- end }}
{{- end -}}

{{- define "fairlead.volumes" -}}
- name: secrets
  {{- if .owner }}
  projected:
    sources:
      - secret:
          name: {{ include "fairlead.secretName" .root }}
          items:
            - {key: secret-key, path: secret-key}
            - {key: broker-url, path: broker-url}
      - secret: {name: {{ .owner }}, items: [{key: database-url, path: database-url}]}
  {{- else }}
  secret:
    secretName: {{ include "fairlead.secretName" .root }}
    items:
      - {key: secret-key, path: secret-key}
      - {key: database-url, path: database-url}
      - {key: broker-url, path: broker-url}
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
{{- end -}}

{{- define "fairlead.secure" -}}
securityContext:
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  readOnlyRootFilesystem: true
  runAsNonRoot: true
{{- end -}}

{{- /* An init container that ends when the database has every migration of this image: new code never meets old tables. */ -}}
{{- define "fairlead.await" -}}
- name: await-migrations
  command: [python, -m, django, wait_for, migrations]
  {{- include "fairlead.container" . | nindent 2 }}
  resources:
    requests: {cpu: 20m, memory: 192Mi}
    limits: {memory: 512Mi}
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
  valueFrom: {secretKeyRef: {name: {{ include "fairlead.secretName" .root }}, key: secret-key-fallbacks, optional: true}}
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
{{- end }}
{{- include "fairlead.oidc" .root.Values.oidc }}
{{- include "fairlead.audit" .root.Values.audit }}
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
{{- if .issuer }}
- {name: FAIRLEAD_OIDC_ISSUER, value: {{ .issuer | quote }}}
- {name: FAIRLEAD_OIDC_CLIENT_ID, value: {{ required "oidc.issuer is set, but oidc.clientId is empty; say what the provider calls this installation" .clientId | quote }}}
- name: FAIRLEAD_OIDC_CLIENT_SECRET
  valueFrom: {secretKeyRef: {name: {{ required "oidc.issuer is set, but oidc.existingSecret is empty; name the Secret with the client's secret" .existingSecret }}, key: client-secret}}
{{- else if or .clientId .existingSecret }}
{{- fail "oidc.clientId or oidc.existingSecret is set, but oidc.issuer is empty; say which provider it is" }}
{{- end }}
{{- end -}}

{{- /* Sinks of the audit log: the worker sends, beat starts that, and web shows how far it is. */ -}}
{{- define "fairlead.audit" -}}
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
  valueFrom: {secretKeyRef: {name: {{ required "audit.webhook is set, but audit.existingSecret is empty; name the Secret with webhook-secret" $.existingSecret }}, key: webhook-secret}}
{{- end }}
{{- if and .existingSecret (not .syslog) (not .webhook) }}
{{- fail "audit.existingSecret is set, but audit.syslog and audit.webhook are empty; say where the audit log is sent" }}
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
