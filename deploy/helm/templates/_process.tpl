{{/* A process: its Deployment, with key hosts beside it if it uses keys, and its disruption budget.
Takes root, name, values, command, keys, settings, archive. */}}
{{- define "agentid.process" -}}
{{- $root := .root -}}
{{- $name := printf "%s-%s" (include "agentid.fullname" $root) .name -}}
{{- $hsm := $root.Values.hsm -}}
{{- $isWeb := eq .name "web" -}}
{{- $settings := .settings | default dict -}}
{{- $secrets := list "service" -}}
{{- $hosts := 0 -}}
{{- if .keys -}}
{{- $hosts = int $hsm.hosts -}}
{{- $settings = merge (dict "PKCS11_HOSTS" $hosts "PKCS11_HOST_FOLDER" "/run/keys/hosts") $hsm.settings $settings -}}
{{- end -}}
{{- /* Files of metrics bear pids, which containers do not share: key hosts have none, their callers count. */ -}}
{{- $own := merge (dict "METRICS_DIR" "/run/metrics") (ternary dict (dict "METRICS_LISTEN" "0.0.0.0:9100") $isWeb) $settings -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels: {{- include "agentid.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .name }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels: {{- include "agentid.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .name }}
  strategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    metadata:
      labels: {{- include "agentid.labels" $root | nindent 8 }}
        app.kubernetes.io/component: {{ .name }}
        {{- if not $isWeb }}
        metrics: parts
        {{- end }}
      {{- with $root.Values.pods.annotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec: {{- include "agentid.pod" . | nindent 6 }}
      terminationGracePeriodSeconds: 40
      topologySpreadConstraints:
        {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
        - maxSkew: 1
          topologyKey: {{ $key }}
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "agentid.selector" $root | nindent 14 }}
              app.kubernetes.io/component: {{ $.name }}
        {{- end }}
      {{- if .keys }}
      initContainers:
        {{- range $number := until $hosts }}
        - name: key-host-{{ $number }}
          restartPolicy: Always
          command: [python, manage.py, key_host, --number, {{ $number | quote }}]
          {{- $ofHost := merge (dict "PKCS11_MODULE" $hsm.module) $settings $hsm.environment }}
          {{- include "agentid.container" (dict "root" $root "settings" $ofHost "secrets" (list "service" "hsm")) | nindent 10 }}
          startupProbe:
            exec: {command: [test, -S, /run/keys/hosts/host-{{ $number }}.sock]}
            periodSeconds: 1
            failureThreshold: 60
          resources: {{- toYaml $root.Values.keyHost.resources | nindent 12 }}
          volumeMounts: {{- include "agentid.mounts" (dict "secrets" (list "service" "hsm")) | nindent 12 }}
            - {name: keys, mountPath: /run/keys}
            {{- with $hsm.volumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
        {{- end }}
      {{- end }}
      containers:
        - name: {{ .name }}
          command: {{- toYaml .command | nindent 12 }}
          {{- include "agentid.container" (dict "root" $root "settings" $own "secrets" $secrets) | nindent 10 }}
          {{- if $isWeb }}
          ports: [{name: http, containerPort: 8000}]
          # Ready once everything answered; afterwards requests come while the process lives, since it does without
          # Valkey or the HSM, and says itself what it cannot do without PostgreSQL.
          startupProbe:
            httpGet: {path: /health/ready, port: http}
            periodSeconds: 5
            timeoutSeconds: 4
            failureThreshold: 60
          readinessProbe:
            httpGet: {path: /health/live, port: http}
            periodSeconds: 5
            timeoutSeconds: 4
            failureThreshold: 2
          livenessProbe:
            httpGet: {path: /health/live, port: http}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          # Endpoints forget the pod before it stops taking requests.
          lifecycle: {preStop: {exec: {command: [sleep, "8"]}}}
          {{- else }}
          ports: [{name: metrics, containerPort: 9100}]
          startupProbe:
            tcpSocket: {port: metrics}
            periodSeconds: 2
            failureThreshold: 150
          livenessProbe:
            tcpSocket: {port: metrics}
            periodSeconds: 20
            timeoutSeconds: 5
            failureThreshold: 3
          {{- end }}
          resources: {{- toYaml .values.resources | nindent 12 }}
          volumeMounts: {{- include "agentid.mounts" (dict "secrets" $secrets) | nindent 12 }}
            - {name: metrics, mountPath: /run/metrics}
            {{- if .keys }}
            - {name: keys, mountPath: /run/keys}
            {{- end }}
            {{- if .archive }}
            - {name: archive, mountPath: /var/lib/service/archive}
            {{- end }}
      volumes: {{- include "agentid.volumes" (dict "root" $root "secrets" (ternary (list "service" "hsm") $secrets (default false .keys))) | nindent 8 }}
        - {name: metrics, emptyDir: {medium: Memory, sizeLimit: 128Mi}}
        {{- if .keys }}
        - {name: keys, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
        {{- with $hsm.volumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- end }}
        {{- if .archive }}
        - {name: archive, persistentVolumeClaim: {claimName: {{ .archive }}}}
        {{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels: {{- include "agentid.labels" $root | nindent 4 }}
spec:
  maxUnavailable: 1
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "agentid.selector" $root | nindent 6 }}
      app.kubernetes.io/component: {{ .name }}
{{- end }}
