{{- define "panlearn.labels" -}}
{app.kubernetes.io/name: {{ .name }}{{ if not .root.Values.plain }}, app.kubernetes.io/part-of: panlearn, app.kubernetes.io/instance: {{ .root.Release.Name }}, app.kubernetes.io/managed-by: {{ .root.Release.Service }}, helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}{{ end }}}
{{- end }}

{{- define "panlearn.image" -}}
{{- if .Values.plain }}panlearn{{ else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "panlearn.pull" -}}
{{- if not .Values.plain }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}
{{- end }}

{{- /* Whether there are many tasks; where there is neither one nor many, no role that wants a task is rendered. */ -}}
{{- define "panlearn.many" -}}
{{- if .Values.tasks }}true{{ end }}
{{- end }}

{{- /* The name of the ConfigMap with the task files. That of one task has a sum in it, as the text of a task never changes; that
of many keeps its name, so that running processes see files come and go. */ -}}
{{- define "panlearn.taskmap" -}}
{{- if .Values.plain }}task{{ else if include "panlearn.many" . }}tasks{{ else }}task-{{ .Values.task.file | sha256sum | trunc 10 }}{{ end }}
{{- end }}

{{- define "panlearn.taskflags" -}}
{{- if include "panlearn.many" . }}--tasks, /etc/panlearn/tasks{{ else }}-f, /etc/panlearn/task/task.yaml{{ end }}
{{- end }}

{{- define "panlearn.taskmount" -}}
{name: task, mountPath: /etc/panlearn/task{{ if include "panlearn.many" . }}s{{ end }}, readOnly: true}
{{- end }}

{{- define "panlearn.podsecurity" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "panlearn.closed" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "panlearn.placed" -}}
{{- with .nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "panlearn.resources" -}}
resources:
  requests: {cpu: {{ .requests.cpu }}, memory: {{ .requests.memory }}}
  limits: {memory: {{ .limits.memory }}}
{{- end }}

{{- /* The broker's address and this role's user of it. */ -}}
{{- define "panlearn.broker" -}}
envFrom:
  - configMapRef: {name: {{ .map }}}
env:
  - {name: PANLEARN_TLS_CA, value: /secrets/ca.pem}
{{- if eq .root.Values.broker.users "creds" }}
  - {name: PANLEARN_CREDS, value: /secrets/user.creds}
{{- else }}
  - {name: PANLEARN_TLS_CERT, value: /secrets/cert.pem}
  - {name: PANLEARN_TLS_KEY, value: /secrets/key.pem}
  - {name: PANLEARN_NKEY, value: /secrets/user.nk}
{{- end }}
{{- end }}

{{- define "panlearn.probes" -}}
startupProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 5
  failureThreshold: 120
livenessProbe:
  httpGet: {path: /healthz, port: {{ . }}}
  periodSeconds: 20
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: {{ . }}}
  periodSeconds: 10
{{- end }}

{{- /* An init container that copies files of the secret into memory. */ -}}
{{- define "panlearn.copied" -}}
- name: {{ .name }}
  image: {{ .root.Values.copier }}
  command: [sh, -c, "umask 077 && cp{{ range .files }} /secrets/{{ . }}{{ end }} /{{ .name }}/"]
  {{- include "panlearn.closed" . | nindent 2 }}
  resources:
    requests: {cpu: 10m, memory: 16Mi}
    limits: {memory: 32Mi}
  volumeMounts:
    - {name: secrets, mountPath: /secrets, readOnly: true}
    - {name: {{ .name }}, mountPath: /{{ .name }}}
{{- end }}

{{- /* Pods start again when the broker's address changes. */ -}}
{{- define "panlearn.scraped" -}}
prometheus.io/scrape: "true"
prometheus.io/port: {{ .port | quote }}
{{- if not .root.Values.plain }}
panlearn/broker: {{ .root.Values.broker | toJson | sha256sum | trunc 10 }}
{{- end }}
{{- end }}

{{- define "panlearn.args" -}}
{{- range . }}{{ . | toJson }}, {{ end }}
{{- end }}

{{- /* Fails where a task is not declared by the name that its file is given: the stage goes by the one, the learner by the other;
and where the stage is not the one that a task wants: a leader is of tasks of trust split, and no other stage is; and where the
learner does not pin the leader. */ -}}
{{- define "panlearn.declared" -}}
{{- $task := fromYaml .text }}
{{- if ne (get $task "name" | toString) .name }}{{ fail (printf "%s: the file declares name: %v; want the same name" .value (get $task "name" | default "none")) }}{{ end }}
{{- $privacy := get $task "privacy" }}
{{- $split := false }}
{{- if kindIs "map" $privacy }}{{ $split = eq (get $privacy "trust" | toString) "split" }}{{ end }}
{{- $v := .root.Values }}
{{- if and $v.stage.enabled $split (not $v.stage.leader.helperKey) }}{{ fail (printf "%s: privacy.trust: split wants a leader: set stage.leader.helperKey and stage.leader.learnerKey, or install the task as a release of its own with stage.enabled=false" .value) }}{{ end }}
{{- if and $v.stage.enabled $v.stage.leader.helperKey (not $split) }}{{ fail (printf "%s: the leader of two operators serves tasks of privacy.trust: split alone: install this one as a release of its own, without stage.leader" .value) }}{{ end }}
{{- if and $v.learner.enabled $split (not $v.learner.stageKey) }}{{ fail (printf "%s: a learner of privacy.trust: split wants the leader's key: set learner.stageKey" .value) }}{{ end }}
{{- end }}
