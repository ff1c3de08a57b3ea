{{- /* The Deployment of a role: dict "role" "all|webhook|controller" "top" $ */ -}}
{{- define "interlock.deployment" }}
{{- $values := .top.Values }}
{{- $render := default (dict) $values.render }}
{{- $apart := eq .role "webhook" }}
{{- $serves := ne .role "controller" }}
{{- $name := ternary "interlock-webhook" "interlock" $apart }}
{{- /* A Deployment keeps its selector when its role changes. */}}
{{- $component := ternary "webhook" "controller" $apart }}
{{- /* For a process that must not read Secrets, or does not make the certificate. */}}
{{- $certificate := or $apart (and $serves (eq $values.certificates "cert-manager")) }}
{{- $clientCa := and $serves $render.clientCa }}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ .top.Release.Namespace | quote }}
  labels: {app.kubernetes.io/name: interlock, app.kubernetes.io/part-of: interlock}
spec:
  {{- if not (kindIs "invalid" $values.replicas) }}
  replicas: {{ int $values.replicas }}
  {{- end }}
  selector:
    matchLabels: {app.kubernetes.io/name: interlock, app.kubernetes.io/component: {{ $component }}}
  # Two controllers overlap only for a moment; the Lease decides.
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: interlock
        app.kubernetes.io/part-of: interlock
        app.kubernetes.io/component: {{ $component }}
    spec:
      serviceAccountName: {{ $name }}
      # Nodes under pressure evict other pods first: without a replica, writes of guarded objects are denied.
      priorityClassName: system-cluster-critical
      # On SIGTERM readiness fails at once, the webhook answers for at least 15 s more, then drains.
      terminationGracePeriodSeconds: 60
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      topologySpreadConstraints:
      {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
      - maxSkew: 1
        topologyKey: {{ . }}
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels: {app.kubernetes.io/name: interlock, app.kubernetes.io/component: {{ $component }}}
      {{- end }}
      {{- with $values.imagePullSecrets }}
      imagePullSecrets: {{ toJson . }}
      {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector: {{ toJson . }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations: {{ toJson . }}
      {{- end }}
      containers:
      - name: interlock
        image: {{ template "interlock.image" .top }}
        {{- with $values.image.pullPolicy }}
        imagePullPolicy: {{ . }}
        {{- end }}
        args:
        - run
        - --role={{ .role }}
        - --metrics-bind-address=0.0.0.0:8443
        {{- if kindIs "string" $render.controllerUser }}
        - {{ printf "--controller-user=%s" $render.controllerUser | quote }}
        {{- else if $apart }}
        - {{ printf "--controller-user=system:serviceaccount:%s:interlock" .top.Release.Namespace | quote }}
        {{- end }}
        {{- if not $apart }}
        - {{ default (printf "%s/interlock-packages" .top.Release.Namespace) $render.packages | printf "--packages-service-account=%s" | quote }}
        {{- end }}
        {{- if eq $values.freeze "same-plan" }}
        - --freeze=same-plan
        {{- end }}
        {{- if and $serves $values.docsUrl }}
        - {{ printf "--docs-url=%s" (trimSuffix "/" $values.docsUrl) | quote }}
        {{- end }}
        {{- if and $values.flavorSecrets (not $apart) }}
        - --flavor-secrets
        {{- end }}
        {{- with $render.watchNamespaces }}
        - {{ printf "--watch-namespaces=%s" (join "," .) | quote }}
        {{- end }}
        {{- if ne "interlock" (default "interlock" $render.serviceName) }}
        - {{ printf "--service-name=%s" $render.serviceName | quote }}
        {{- end }}
        {{- if and $serves $render.apiServers }}
        - {{ printf "--api-server-cidr=%s" (join "," $render.apiServers) | quote }}
        {{- end }}
        {{- if $certificate }}
        - --cert-mode=files
        - --cert-dir=/etc/interlock/certificate
        {{- end }}
        {{- if $clientCa }}
        - --client-ca=/etc/interlock/client-ca/client-ca.crt
        {{- with $clientCa.names }}
        - {{ printf "--client-name=%s" (join "," .) | quote }}
        {{- end }}
        {{- end }}
        {{- range $values.extraArgs }}
        - {{ . | quote }}
        {{- end }}
        env:
        - name: INTERLOCK_NAMESPACE
          valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
        ports:
        - {name: webhook, containerPort: 9443, protocol: TCP}
        - {name: metrics, containerPort: 8443, protocol: TCP}
        livenessProbe:
          httpGet: {path: /livez, port: webhook, scheme: HTTPS}
          periodSeconds: 10
          timeoutSeconds: 2
          failureThreshold: 3
        readinessProbe:
          httpGet: {path: /readyz, port: webhook, scheme: HTTPS}
          periodSeconds: 2
          timeoutSeconds: 2
          failureThreshold: 3
        # A cold start reads all Instances first; liveness must not end it.
        startupProbe:
          httpGet: {path: /livez, port: webhook, scheme: HTTPS}
          periodSeconds: 1
          timeoutSeconds: 2
          failureThreshold: 60
        resources: {{ toJson $values.resources }}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
        {{- if or $certificate $clientCa }}
        volumeMounts:
        {{- if $certificate }}
        - {name: certificate, mountPath: /etc/interlock/certificate, readOnly: true}
        {{- end }}
        {{- if $clientCa }}
        - {name: client-ca, mountPath: /etc/interlock/client-ca, readOnly: true}
        {{- end }}
      volumes:
      {{- if $certificate }}
      - name: certificate
        secret:
          secretName: interlock-certificate
          # The Secret holds the CA's key as well, which can sign for any name that the API server trusts.
          items: [{key: tls.crt, path: tls.crt}, {key: tls.key, path: tls.key}]
      {{- end }}
      {{- if $clientCa }}
      - name: client-ca
        configMap:
          name: {{ $clientCa.configMap | quote }}
          items: [{key: client-ca.crt, path: client-ca.crt}]
      {{- end }}
        {{- end }}
{{- end }}
