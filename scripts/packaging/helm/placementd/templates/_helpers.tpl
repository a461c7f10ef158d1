{{- define "placementd.labels" -}}
app.kubernetes.io/name: placementd
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "placementd.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}-placementd
{{- end }}

{{/* NUMBER=HOST:PORT of each node. */}}
{{- define "placementd.members" -}}
{{- $name := include "placementd.name" . -}}
{{- $members := list -}}
{{- range $at, $number := .Values.numbers -}}
{{- $members = append $members (printf "%d=%s-%d.%s-nodes:18779" (int $number) $name $at $name) -}}
{{- end -}}
{{ join "," $members }}
{{- end }}

{{/* HOST:PORT of each node. */}}
{{- define "placementd.peers" -}}
{{- $name := include "placementd.name" . -}}
{{- $peers := list -}}
{{- range $at, $number := .Values.numbers -}}
{{- $peers = append $peers (printf "%s-%d.%s-nodes:18779" $name $at $name) -}}
{{- end -}}
{{ join "," $peers }}
{{- end }}

{{/* Scheme of the API. */}}
{{- define "placementd.scheme" -}}
{{ ternary "HTTPS" "HTTP" (ne .Values.apiTlsSecretName "") }}
{{- end }}
