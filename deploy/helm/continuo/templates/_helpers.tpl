{{- define "continuo.labels" -}}
app.kubernetes.io/name: continuo
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "continuo.name" -}}
{{- if contains "continuo" .Release.Name }}{{ .Release.Name | trunc 50 }}{{ else }}{{ printf "%s-continuo" .Release.Name | trunc 50 }}{{ end }}
{{- end }}
