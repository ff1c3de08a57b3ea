package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
)

// arguments of a component's command line.
func (p *plane) arguments(name string) []string {
	switch name {
	case "etcd":
		return p.etcdArguments()
	case "kube-apiserver":
		return p.apiserverArguments()
	case "kube-controller-manager":
		return []string{
			"--kubeconfig=" + p.kubeconfigPath(name),
			"--controllers=*,-nodeipam",
			// One identity a controller, as in a cluster: the garbage collector and the
			// namespace controller then arrive in admission under their own names.
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + p.path("sa.key"),
			"--root-ca-file=" + p.path("ca.crt"),
			"--leader-elect=false",
			"--secure-port=0",
		}
	case "kube-scheduler":
		return []string{"--kubeconfig=" + p.kubeconfigPath(name), "--leader-elect=false", "--secure-port=0"}
	case "kwok":
		return []string{
			"--kubeconfig=" + p.kubeconfigPath(name),
			"--config=" + p.path("kwok.yaml"),
			"--manage-all-nodes=true",
			"--node-lease-duration-seconds=40",
			"--cidr=" + p.o.podCIDR,
			"--node-ip=127.0.0.1",
			fmt.Sprintf("--node-port=%d", p.ports.kwok),
			fmt.Sprintf("--server-address=127.0.0.1:%d", p.ports.kwok),
			"--tls-cert-file=" + p.path("server.crt"),
			"--tls-private-key-file=" + p.path("server.key"),
		}
	default:
		return nil
	}
}

func (p *plane) etcdArguments() []string {
	peer := fmt.Sprintf("http://127.0.0.1:%d", p.ports.etcdPeer)
	return []string{
		"--name=default",
		"--data-dir=" + p.path("etcd"),
		"--listen-client-urls=" + p.etcdURL(),
		"--advertise-client-urls=" + p.etcdURL(),
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=default=" + peer,
		"--quota-backend-bytes=8589934592",
		"--unsafe-no-fsync", // nothing here survives the machine, nor has to
		"--log-level=warn",
	}
}

func (p *plane) apiserverArguments() []string {
	args := []string{
		"--etcd-servers=" + p.etcdURL(),
		fmt.Sprintf("--secure-port=%d", p.ports.apiserver),
		"--bind-address=" + p.o.bind,
		// Given, as there may be no default route to find it by; not written into the
		// endpoints of `kubernetes`, as nothing serves there.
		"--advertise-address=" + p.o.advertise,
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + p.path("server.crt"),
		"--tls-private-key-file=" + p.path("server.key"),
		"--client-ca-file=" + p.path("ca.crt"),
		"--cert-dir=" + p.path("apiserver"),
		"--token-auth-file=" + p.path("tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + p.path("sa.key"),
		"--service-account-signing-key-file=" + p.path("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--allow-privileged=true",
		// A stop need not wait for watches to be closed by their clients.
		"--shutdown-delay-duration=0s",
	}
	if p.o.servicePath {
		args = append(args, "--enable-aggregator-routing=true")
	}
	if p.o.audit {
		args = append(args, "--audit-log-path="+p.auditLog(), "--audit-policy-file="+p.path("audit-policy.yaml"))
	}
	return append(args, p.o.apiserverArgs...)
}

func (p *plane) writeAuditPolicy() error {
	policy := "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n"
	return os.WriteFile(filepath.Join(p.o.dir, "audit-policy.yaml"), []byte(policy), 0o600)
}
