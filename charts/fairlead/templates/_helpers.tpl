{{- define "fairlead.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- /* What pods are selected by; never changes. Takes a dictionary of root and component. */ -}}
{{- define "fairlead.selector" -}}
app.kubernetes.io/name: fairlead
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- /* Takes a dictionary of root and component, and of labels, which win over the common ones. */ -}}
{{- define "fairlead.labels" -}}
{{ include "fairlead.selector" . }}
app.kubernetes.io/part-of: fairlead
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with merge dict (.labels | default dict) .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* Labels and annotations of an object without annotations of its own. Takes the same, and what those of Argo CD take. */ -}}
{{- define "fairlead.metadata" -}}
labels: {{- include "fairlead.labels" . | nindent 2 }}
{{- with include "fairlead.annotations" . }}
annotations: {{- . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* An object's annotations of Argo CD, and the common ones; empty without any. Takes a dictionary of root, and what those of Argo CD take. */ -}}
{{- define "fairlead.annotations" -}}
{{- with merge (include "fairlead.argoCD" . | fromYaml) .root.Values.commonAnnotations }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{- /* The same after others in the same braces, of an object that stays at uninstall. */ -}}
{{- define "fairlead.keptAnnotations" -}}
{{- range $key, $value := include "fairlead.annotations" (set . "isKept" true) | fromYaml }}, {{ toJson $key }}: {{ toJson $value }}{{ end -}}
{{- end -}}

{{- /*
The order of Argo CD, which applies a wave once all of the wave before is healthy:

  0  what the others need   1  migrations   2  workloads and their claims   3  the cluster's entry
  4  what may never become healthy: addresses from outside, scaling, claims that no pod uses yet

Jobs are hooks of the phase Sync, which each sync makes again. Helm's pre-install hooks would run in the phase before it,
without a database. Takes a dictionary of root, and of wave, isHook and isKept where they are so.
*/ -}}
{{- define "fairlead.argoCD" -}}
{{- if .root.Values.argoCD }}
{{- with .wave }}
argocd.argoproj.io/sync-wave: {{ . | quote }}
{{- end }}
{{- if .isHook }}
argocd.argoproj.io/hook: Sync
argocd.argoproj.io/hook-delete-policy: BeforeHookCreation,HookSucceeded
{{- end }}
{{- if .isKept }}
argocd.argoproj.io/sync-options: Prune=false,Delete=false
{{- end }}
{{- end }}
{{- end -}}

{{- define "fairlead.serviceAccount" -}}
{{- with .Values.serviceAccount -}}
{{- if and (not .create) (not .name) -}}
{{- fail "serviceAccount.create is false, but serviceAccount.name is empty; name a ServiceAccount that exists" -}}
{{- end -}}
{{- .name | default (include "fairlead.fullname" $) -}}
{{- end -}}
{{- end -}}

{{- /* The waker's own account; that of the control plane where the values give one. */ -}}
{{- define "fairlead.wakerAccount" -}}
{{- ternary (printf "%s-waker" (include "fairlead.fullname" .)) (include "fairlead.serviceAccount" .) .Values.serviceAccount.create -}}
{{- end -}}

{{- /* Name of a key in a Secret of the operator. Takes a dictionary of root and key. */ -}}
{{- define "fairlead.key" -}}
{{- with index .root.Values.secretKeys .key }}{{ . | quote }}{{ else }}{{ .key }}{{ end -}}
{{- end -}}

{{- /* Names of ClusterRoles belong to the whole cluster. */ -}}
{{- define "fairlead.clusterName" -}}
{{ .Release.Namespace }}-{{ include "fairlead.fullname" . }}
{{- end -}}

{{- /* Roles bound in namespaces, as pairs of role and namespace in JSON. */ -}}
{{- define "fairlead.bindings" -}}
{{- $roles := list "driver" "driver-access" -}}
{{- if eq (dig "reach" "direct" .Values.cluster.file) "apiServer" }}{{ $roles = concat $roles (list "driver-metrics" "driver-replays") }}{{ end -}}
{{- if .Values.cluster.keda.prometheus }}{{ $roles = append $roles "driver-keda" }}{{ end -}}
{{- $claims := eq (dig "gpuAllocation" "devicePlugin" .Values.cluster.file) "claims" -}}
{{- if $claims }}{{ $roles = append $roles "driver-claims" }}{{ end -}}
{{- if .Values.cluster.modelPools }}{{ $roles = append $roles "driver-pools" }}{{ end -}}
{{- if .Values.cluster.repartition }}{{ $roles = append $roles "driver-repartition-pods" }}{{ end -}}
{{- $bound := list -}}
{{- range $namespace := include "fairlead.namespaces" . | fromJsonArray -}}
{{- range $role := $roles }}{{ $bound = append $bound (list $role $namespace) }}{{ end -}}
{{- end -}}
{{- if .Values.cluster.repartition -}}
{{- $bound = append $bound (list "driver-repartition-mig" (dig "repartition" "namespace" "gpu-operator" .Values.cluster.file)) -}}
{{- end -}}
{{- $jobs := include "fairlead.jobsNamespace" . -}}
{{- if and $claims (not (has $jobs (include "fairlead.namespaces" . | fromJsonArray))) }}{{ $bound = append $bound (list "driver-claims" $jobs) }}{{ end -}}
{{- if include "fairlead.isClosed" . }}{{ $bound = append $bound (list "driver-jobs-network" $jobs) }}{{ end -}}
{{- append $bound (list "driver-jobs" $jobs) | toJson -}}
{{- end -}}

{{- /* Roles bound once for the cluster, as JSON. */ -}}
{{- define "fairlead.clusterBindings" -}}
{{- $roles := list "driver-gateways" "driver-identity" -}}
{{- if .Values.cluster.readNodes }}{{ $roles = append $roles "driver-nodes" }}{{ end -}}
{{- if eq (dig "gpuAllocation" "devicePlugin" .Values.cluster.file) "claims" }}{{ $roles = append $roles "driver-devices" }}{{ end -}}
{{- if .Values.cluster.repartition }}{{ $roles = append $roles "driver-repartition" }}{{ end -}}
{{- $roles | toJson -}}
{{- end -}}

{{- /* The rules of one of the driver's roles, as the driver's own file has them. Takes a dictionary of root and role. */ -}}
{{- define "fairlead.rules" -}}
{{- range $document := splitList "\n---\n" (.root.Files.Get "files/role.yaml") -}}
{{- $role := fromYaml $document -}}
{{- if eq $role.metadata.name (printf "fairlead-%s" $.role) }}{{ toYaml $role.rules }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.secretName" -}}
{{- if .Values.existingSecret -}}
{{ .Values.existingSecret }}
{{- else if .Values.argoCD -}}
{{- fail "argoCD is true, but existingSecret is empty; name a Secret with the keys secret-key, database-url and broker-url (with postgresql.enabled also postgresql-password, with redis.enabled redis.conf), since Argo CD renders without the cluster and would make other secrets each time" -}}
{{- else if omit .Values.secretKeys "client-secret" "webhook-secret" -}}
{{- fail "secretKeys names keys of existingSecret, which is empty; name the Secret that has them" -}}
{{- else if and .Values.postgresql.enabled .Values.redis.enabled -}}
{{ include "fairlead.fullname" . }}
{{- else -}}
{{- fail "existingSecret is empty, but postgresql.enabled or redis.enabled is false; name a Secret with the keys secret-key, database-url and broker-url" -}}
{{- end -}}
{{- end -}}

{{- /* Takes a dictionary of root and image. */ -}}
{{- define "fairlead.image" -}}
{{- $reference := printf "%s:%s" .image.repository (.image.tag | default .root.Chart.AppVersion) -}}
{{- $released := .root.Files.Get "files/digests.yaml" | fromYaml -}}
{{- with .image.digest | default (index $released $reference) -}}
{{ $.image.repository }}@{{ . }}
{{- else -}}
{{ $reference }}
{{- end -}}
{{- end -}}

{{- /* An object of this namespace as it is now, as JSON; empty without it, and without a cluster. Takes a dictionary of root, kind and name. */ -}}
{{- define "fairlead.found" -}}
{{- lookup "v1" .kind .root.Release.Namespace .name | default dict | toJson -}}
{{- end -}}

{{- /* The chart whose defaults hold, such as 0.2.0; empty for those of before, of which nothing is written down. */ -}}
{{- define "fairlead.defaultsOf" -}}
{{- $found := include "fairlead.found" (dict "root" . "kind" "ConfigMap" "name" (printf "%s-defaults" (include "fairlead.fullname" .))) | fromJson -}}
{{- $chart := dig "data" "chart" "" $found -}}
{{- if and (ne .Values.defaults "compatible") (or $chart .Release.IsInstall (eq .Values.defaults "current")) -}}
{{- $chart | default .Chart.Version -}}
{{- end -}}
{{- end -}}

{{- /* Whether Redis requires its password: `required`, `optional` for a Secret that cannot be read now, or empty. */ -}}
{{- define "fairlead.redisPassword" -}}
{{- if not .Values.redis.enabled -}}
{{- else if eq .Values.redis.password "required" -}}
required
{{- else if eq .Values.redis.password "auto" -}}
{{- $found := include "fairlead.found" (dict "root" . "kind" "Secret" "name" (include "fairlead.secretName" .)) | fromJson -}}
{{- if hasKey (dig "data" dict $found) (include "fairlead.key" (dict "root" . "key" "redis.conf") | trimAll "\"") -}}
required
{{- else if .Values.existingSecret -}}
{{- ternary "" "optional" (hasKey $found "data") -}}
{{- else if and .Release.IsInstall (ne .Values.defaults "compatible") -}}
required
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* An emptyDir of this size; of any with the defaults of before. Takes a dictionary of root and size. */ -}}
{{- define "fairlead.emptyDir" -}}
{{- if include "fairlead.defaultsOf" .root -}}
{sizeLimit: {{ .size }}}
{{- else -}}
{}
{{- end -}}
{{- end -}}

{{- /* Registries of images that services may name, separated by commas; empty allows all. */ -}}
{{- define "fairlead.registries" -}}
{{- if kindIs "slice" .Values.allowedRegistries -}}
{{- join "," .Values.allowedRegistries -}}
{{- else if include "fairlead.defaultsOf" . -}}
{{- $found := list -}}
{{- range list .Values.image.repository .Values.cluster.runtimeImage.repository -}}
{{- $parts := splitList "/" . -}}
{{- $named := and (gt (len $parts) 1) (regexMatch "[.:]|^localhost$" (first $parts)) -}}
{{- $whole := ternary . (printf "docker.io/%s%s" (ternary "library/" "" (eq (len $parts) 1)) .) $named -}}
{{- $found = append $found (dir $whole) -}}
{{- end -}}
{{- $found | uniq | join "," -}}
{{- end -}}
{{- end -}}

{{- define "fairlead.claim" -}}
{{- (index .root.Values.persistence .which).existingClaim | default (printf "%s-%s" (include "fairlead.fullname" .root) .which) -}}
{{- end -}}

{{- /* Whether the release was installed with namespaces of their own for models and Jobs, in closed networks; an upgrade of an earlier one keeps what that has. */ -}}
{{- define "fairlead.isSeparate" -}}
{{- if .Release.IsUpgrade -}}
{{- $name := include "fairlead.fullname" . -}}
{{- $account := lookup "v1" "ServiceAccount" .Release.Namespace $name | default dict -}}
{{- $defaults := include "fairlead.found" (dict "root" . "kind" "ConfigMap" "name" (printf "%s-defaults" $name)) | fromJson -}}
{{- if has "separate" (list (dig "metadata" "annotations" "fairlead/models" "" $account) (dig "data" "models" "" $defaults)) -}}true{{- end -}}
{{- else if ne .Values.defaults "compatible" -}}
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

{{- /* Room of the cache of models; empty without one. New installations with storage for several nodes have it: a class for one node often binds a claim at its first pod, and until then `helm --wait` waits. An upgrade keeps what the installation has. */ -}}
{{- define "fairlead.modelCache" -}}
{{- $artifacts := dig "artifacts" dict .Values.cluster.file -}}
{{- $found := include "fairlead.found" (dict "root" . "kind" "ConfigMap" "name" (printf "%s-defaults" (include "fairlead.fullname" .))) | fromJson -}}
{{- $isFirst := and .Release.IsInstall (eq .Values.persistence.artifacts.accessMode "ReadWriteMany") -}}
{{- $has := and (include "fairlead.defaultsOf" .) (or $isFirst (eq (dig "data" "model-cache" "" $found) "true")) -}}
{{- $size := .Values.cluster.modelCache | default (ternary .Values.persistence.artifacts.size "none" (not (empty $has))) -}}
{{- if and .Values.cluster.enabled (ne $size "none") (not (hasKey $artifacts "cache")) (ne (dig "from" "" $artifacts) "claim") -}}
{{- $size -}}
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
