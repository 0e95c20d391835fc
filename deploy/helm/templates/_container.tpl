{{/* What every container of the service has: image, rights, settings. Takes root, name, settings, secrets. */}}
{{- define "agentid.container" -}}
{{- $root := .root -}}
image: {{ include "agentid.image" $root }}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: {drop: [ALL]}
  seccompProfile: {type: RuntimeDefault}
env:
  - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
  # Probes and Prometheus ask for the pod by its address.
  - name: ALLOWED_HOSTS
    value: {{ printf "%s,$(POD_IP),[$(POD_IP)]" (join "," ($root.Values.hosts | default (list (urlParse $root.Values.baseUrl).hostname))) | quote }}
  - {name: BASE_URL, value: {{ $root.Values.baseUrl | quote }}}
  - {name: TRUSTED_PROXIES, value: {{ join "," $root.Values.trustedProxies | quote }}}
  {{- range $name, $value := .settings }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
  {{- range $name, $value := $root.Values.settings }}
  - {name: {{ $name }}, value: {{ $value | quote }}}
  {{- end }}
  {{- range $kind := .secrets }}
  {{- range $name, $file := (get $root.Values.secrets $kind).files }}
  - {name: {{ $name }}_FILE, value: /run/secrets/{{ $kind }}/{{ $file }}}
  {{- end }}
  {{- end }}
{{- end }}

{{- define "agentid.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- range $kind := .secrets }}
- {name: {{ $kind }}-secrets, mountPath: /run/secrets/{{ $kind }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "agentid.volumes" -}}
{{- $root := .root -}}
- {name: tmp, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
{{- range $kind := .secrets }}
{{- with get $root.Values.secrets $kind }}
- name: {{ $kind }}-secrets
  secret:
    secretName: {{ .name }}
    defaultMode: 0440
    items:
      {{- range $file := values .files | sortAlpha | uniq }}
      - {key: {{ $file }}, path: {{ $file }}}
      {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* What every pod has. Takes root and name. */}}
{{- define "agentid.pod" -}}
{{- $values := .root.Values -}}
automountServiceAccountToken: false
enableServiceLinks: false
serviceAccountName: {{ $values.pods.serviceAccount }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with $values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - {name: {{ . }}}
  {{- end }}
{{- end }}
{{- with $values.pods.priorityClass }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.pods.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.pods.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
