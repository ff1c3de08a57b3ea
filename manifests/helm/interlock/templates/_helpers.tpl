{{- /*
.Values.render has what `interlock render` says beyond the values of the chart, whose schema refuses it. With Helm it is
absent, and all in it.
*/ -}}
{{- define "interlock.image" -}}
{{ (default (dict) .Values.render).image | default (printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion)) | quote }}
{{- end }}

{{- define "interlock.service" -}}
{{ (default (dict) .Values.render).serviceName | default "interlock" }}
{{- end }}

{{- /* Binds the process, or "account", to the ClusterRole of that name, or to "role". */ -}}
{{- define "interlock.bound" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ .name }}
  labels: {app.kubernetes.io/name: interlock, app.kubernetes.io/part-of: interlock}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ index . "role" | default .name | quote }}}
subjects:
- {kind: ServiceAccount, name: {{ index . "account" | default "interlock" }}, namespace: {{ .top.Release.Namespace | quote }}}
{{- end }}

{{- /* Binds the process to the Role of that name in that namespace. */ -}}
{{- define "interlock.bound-within" }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ .name }}
  namespace: {{ .namespace | quote }}
  labels: {app.kubernetes.io/name: interlock, app.kubernetes.io/part-of: interlock}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ .name }}}
subjects:
- {kind: ServiceAccount, name: interlock, namespace: {{ .top.Release.Namespace | quote }}}
{{- end }}
