{{- /* Rendered by `interlock render helm`; do not edit. */ -}}
{{- define "interlock.rules.controller" }}
- apiGroups:
  - kudo.dev
  resources:
  - instances
  - operatorversions
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - ""
  resources:
  - namespaces
  - services
  - configmaps
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - interlock.dev
  resources:
  - interlocks
  - overrides
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - gateway.networking.k8s.io
  resources:
  - httproutes
  - grpcroutes
  - tlsroutes
  - gateways
  - gatewayclasses
  - tcproutes
  - udproutes
  - listenersets
  - referencegrants
  - backendtlspolicies
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - networking.k8s.io
  resources:
  - ingresses
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - gateway.networking.x-k8s.io
  resources:
  - xlistenersets
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - kuadrant.io
  resources:
  - ratelimitpolicies
  - authpolicies
  - tlspolicies
  - dnspolicies
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - gateway.envoyproxy.io
  resources:
  - clienttrafficpolicies
  - backendtrafficpolicies
  - securitypolicies
  - envoyextensionpolicies
  - envoypatchpolicies
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - gateway-operator.konghq.com
  resources:
  - dataplanes
  - controlplanes
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - kudo.dev
  resources:
  - instances
  verbs:
  - update
  - patch
- apiGroups:
  - kudo.dev
  resources:
  - instances/status
  verbs:
  - get
  - update
  - patch
- apiGroups:
  - kudo.dev
  resources:
  - operators
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - interlock.dev
  resources:
  - interlocks/status
  verbs:
  - patch
- apiGroups:
  - interlock.dev
  resources:
  - interlocks
  verbs:
  - create
- apiGroups:
  - interlock.dev
  resources:
  - overrides
  verbs:
  - delete
- apiGroups:
  - ""
  resources:
  - pods
  verbs:
  - list
- apiGroups:
  - gateway-operator.konghq.com
  resources:
  - dataplanes/status
  verbs:
  - patch
- apiGroups:
  - apps
  resources:
  - replicasets
  verbs:
  - list
{{- end }}
{{- define "interlock.rules.watch" }}
- apiGroups:
  - ""
  resources:
  - configmaps
  - persistentvolumeclaims
  - pods
  - services
  - serviceaccounts
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - apps
  resources:
  - daemonsets
  - deployments
  - statefulsets
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - autoscaling
  resources:
  - horizontalpodautoscalers
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - batch
  resources:
  - cronjobs
  - jobs
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - networking.k8s.io
  resources:
  - ingresses
  - networkpolicies
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - policy
  resources:
  - poddisruptionbudgets
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - rbac.authorization.k8s.io
  resources:
  - roles
  - rolebindings
  - clusterroles
  - clusterrolebindings
  verbs:
  - get
  - list
  - watch
{{- end }}
{{- define "interlock.rules.webhook" }}
- apiGroups:
  - kudo.dev
  resources:
  - instances
  - operatorversions
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - ""
  resources:
  - namespaces
  - services
  - configmaps
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - interlock.dev
  resources:
  - interlocks
  - overrides
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - gateway.networking.k8s.io
  resources:
  - httproutes
  - grpcroutes
  - tlsroutes
  - gateways
  - gatewayclasses
  - tcproutes
  - udproutes
  - listenersets
  - referencegrants
  - backendtlspolicies
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - networking.k8s.io
  resources:
  - ingresses
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - gateway.networking.x-k8s.io
  resources:
  - xlistenersets
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - kuadrant.io
  resources:
  - ratelimitpolicies
  - authpolicies
  - tlspolicies
  - dnspolicies
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - gateway.envoyproxy.io
  resources:
  - clienttrafficpolicies
  - backendtrafficpolicies
  - securitypolicies
  - envoyextensionpolicies
  - envoypatchpolicies
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - gateway-operator.konghq.com
  resources:
  - dataplanes
  - controlplanes
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - apps
  resources:
  - replicasets
  verbs:
  - list
{{- end }}
{{- define "interlock.rules.flavor-sources" }}
- apiGroups:
  - ""
  resources:
  - configmaps
  verbs:
  - get
  - patch
{{- end }}
{{- define "interlock.rules.flavor-secrets" }}
- apiGroups:
  - ""
  resources:
  - secrets
  verbs:
  - get
  - patch
{{- end }}
{{- define "interlock.rules.dataplanes" }}
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - ""
  resources:
  - services
  - pods
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - autoscaling
  resources:
  - horizontalpodautoscalers
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - policy
  resources:
  - poddisruptionbudgets
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - discovery.k8s.io
  resources:
  - endpointslices
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - create
  - patch
  - delete
- apiGroups:
  - gateway-operator.konghq.com
  resources:
  - dataplanes
  - dataplanes/status
  verbs:
  - patch
- apiGroups:
  - gateway-operator.konghq.com
  resources:
  - dataplanes/finalizers
  verbs:
  - update
- apiGroups:
  - apps
  resources:
  - controllerrevisions
  verbs:
  - get
  - list
  - create
  - patch
  - delete
- apiGroups:
  - ""
  resources:
  - services
  verbs:
  - create
  - patch
  - delete
- apiGroups:
  - autoscaling
  resources:
  - horizontalpodautoscalers
  verbs:
  - create
  - patch
  - delete
- apiGroups:
  - policy
  resources:
  - poddisruptionbudgets
  verbs:
  - create
  - patch
  - delete
{{- end }}
{{- define "interlock.rules.policies" }}
- apiGroups:
  - ""
  resources:
  - configmaps
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - limitador.kuadrant.io
  resources:
  - limitadors
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - authorino.kuadrant.io
  resources:
  - authconfigs
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - kuadrant.io
  resources:
  - kuadrants
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - gateway.envoyproxy.io
  resources:
  - envoyproxies
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - gateway.networking.k8s.io
  resources:
  - gateways/status
  verbs:
  - patch
- apiGroups:
  - kuadrant.io
  resources:
  - ratelimitpolicies/status
  - authpolicies/status
  verbs:
  - patch
- apiGroups:
  - gateway.envoyproxy.io
  resources:
  - envoypatchpolicies
  verbs:
  - create
  - patch
  - delete
- apiGroups:
  - authorino.kuadrant.io
  resources:
  - authconfigs
  verbs:
  - create
  - patch
  - delete
{{- end }}
{{- define "interlock.rules.limitadors" }}
- apiGroups:
  - ""
  resources:
  - configmaps
  verbs:
  - create
  - get
  - patch
- apiGroups:
  - limitador.kuadrant.io
  resources:
  - limitadors
  verbs:
  - get
  - patch
{{- end }}
{{- define "interlock.rules.dataplane-certificates" }}
- apiGroups:
  - ""
  resources:
  - secrets
  verbs:
  - create
  - get
  - patch
{{- end }}
{{- define "interlock.rules.viewer" }}
- apiGroups:
  - kudo.dev
  resources:
  - instances
  - operatorversions
  - operators
  verbs:
  - get
  - list
  - watch
- apiGroups:
  - kudo.dev
  resources:
  - instances/status
  verbs:
  - get
- apiGroups:
  - interlock.dev
  resources:
  - interlocks
  - overrides
  verbs:
  - get
  - list
  - watch
{{- end }}
{{- define "interlock.rules.editor" }}
- apiGroups:
  - kudo.dev
  resources:
  - instances
  verbs:
  - create
  - update
  - patch
  - delete
  - deletecollection
- apiGroups:
  - kudo.dev
  resources:
  - instances
  verbs:
  - abort
  - retry
  - restart
  - pause
  - resume
  - adopt
{{- end }}
{{- define "interlock.rules.admin" }}
- apiGroups:
  - gateway-operator.konghq.com
  resources:
  - dataplanes
  verbs:
  - override-router-flavor
- apiGroups:
  - apps
  resources:
  - deployments
  verbs:
  - override-router-flavor
- apiGroups:
  - ""
  resources:
  - configmaps
  - secrets
  verbs:
  - override-router-flavor
{{- end }}
{{- define "interlock.rules.package-installer" }}
- apiGroups:
  - kudo.dev
  resources:
  - operatorversions
  - operators
  verbs:
  - create
  - update
  - patch
  - delete
  - deletecollection
{{- end }}
