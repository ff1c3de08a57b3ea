package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// pods is a proxy to the fake pods, which have addresses that nothing dials on plain loopback: it takes CONNECT and
// plain requests to NAME.NAMESPACE.svc or to the address of a pod, and answers as the Kong in that pod does.
type pods struct{ api *client }

// pod is what the proxy knows of a pod that is ready.
type pod struct {
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		Containers []struct {
			Image string
			Env   []struct{ Name, Value string }
		}
	}
	Status struct {
		PodIP      string
		Conditions []struct{ Type, Status string }
	}
}

// servePods starts the proxy on a free port, until the process ends; its URL is what a client needs.
func servePods(api *client) (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() { _ = http.Serve(listener, &pods{api}) }()
	return "http://" + listener.Addr().String(), nil
}

func (p *pods) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, port, err := p.find(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	kong := found.kong(port)
	if r.Method != http.MethodConnect {
		kong.ServeHTTP(w, r)
		return
	}
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(connection, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		_ = connection.Close()
		return
	}
	serveOne(connection, kong)
}

// serveOne answers on one connection until it ends.
func serveOne(connection net.Conn, handler http.Handler) {
	queue := make(chan net.Conn, 1)
	queue <- connection
	server := &http.Server{Handler: handler}
	server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			close(queue)
		}
	}
	_ = server.Serve(oneConnection{queue, connection.LocalAddr()})
}

// oneConnection accepts what is queued, until the queue is closed.
type oneConnection struct {
	queue   <-chan net.Conn
	address net.Addr
}

func (l oneConnection) Accept() (net.Conn, error) {
	if connection, ok := <-l.queue; ok {
		return connection, nil
	}
	return nil, net.ErrClosed
}
func (l oneConnection) Close() error   { return nil }
func (l oneConnection) Addr() net.Addr { return l.address }

// find looks up the pod that a host stands for, and the port of it that is asked.
func (p *pods) find(ctx context.Context, hostport string) (*pod, string, error) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = hostport, "80"
	}
	if service, ok := strings.CutSuffix(host, ".svc"); ok {
		name, namespace, _ := strings.Cut(service, ".")
		if host, port, err = p.endpoint(ctx, namespace, name, port); err != nil {
			return nil, "", err
		}
	}
	var list struct{ Items []pod }
	if err := p.read(ctx, "/api/v1/pods?fieldSelector="+url.QueryEscape("status.podIP="+host), &list); err != nil {
		return nil, "", err
	}
	for _, found := range list.Items {
		for _, condition := range found.Status.Conditions {
			if condition.Type == "Ready" && condition.Status == "True" {
				return &found, port, nil
			}
		}
	}
	return nil, "", fmt.Errorf("no pod that is ready has the address %s", host)
}

// endpoint picks one of a Service's ready endpoints, as kube-proxy does.
func (p *pods) endpoint(ctx context.Context, namespace, name, port string) (string, string, error) {
	var service struct {
		Spec struct {
			Ports []struct {
				Name string
				Port int
			}
		}
	}
	if err := p.read(ctx, "/api/v1/namespaces/"+namespace+"/services/"+name, &service); err != nil {
		return "", "", err
	}
	var slices struct {
		Items []struct {
			Ports []struct {
				Name string
				Port int
			}
			Endpoints []struct {
				Addresses  []string
				Conditions struct{ Ready bool }
			}
		}
	}
	selector := url.QueryEscape("kubernetes.io/service-name=" + name)
	path := "/apis/discovery.k8s.io/v1/namespaces/" + namespace + "/endpointslices?labelSelector=" + selector
	if err := p.read(ctx, path, &slices); err != nil {
		return "", "", err
	}
	var targets [][2]string
	for _, wanted := range service.Spec.Ports {
		for _, slice := range slices.Items {
			for _, offered := range slice.Ports {
				if fmt.Sprint(wanted.Port) != port || offered.Name != wanted.Name {
					continue
				}
				for _, endpoint := range slice.Endpoints {
					if endpoint.Conditions.Ready {
						targets = append(targets, [2]string{endpoint.Addresses[0], fmt.Sprint(offered.Port)})
					}
				}
			}
		}
	}
	if len(targets) == 0 {
		return "", "", fmt.Errorf("Service %s/%s has no ready endpoint at port %s", namespace, name, port)
	}
	target := targets[rand.IntN(len(targets))]
	return target[0], target[1], nil
}

func (p *pods) read(ctx context.Context, path string, into any) error {
	text, err := p.api.get(ctx, path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// kong answers as the Kong in this pod, at one of its ports.
func (p *pod) kong(port string) http.Handler {
	version, flavor := p.runs()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Server", "kong/"+version)
		var answer any
		switch {
		case port == "8100" && r.URL.Path == "/status/ready":
			answer = map[string]string{"message": "ready"}
		case port == "8100" && r.URL.Path == "/status":
			answer = map[string]any{"database": map[string]bool{"reachable": true}}
		case port == "8000":
			answer = struct {
				Pod     string `json:"pod"`
				Version string `json:"version"`
				Flavor  string `json:"routerFlavor"`
			}{p.Metadata.Name, version, flavor}
		default:
			w.WriteHeader(http.StatusNotFound)
			answer = map[string]string{"message": "Not found"}
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
}

// runs tells the version and the router flavor that the pod's image and environment stand for.
func (p *pod) runs() (version, flavor string) {
	version, flavor = "unknown", "traditional_compatible"
	for _, container := range p.Spec.Containers {
		if at := strings.LastIndex(container.Image, ":"); at >= 0 {
			version = container.Image[at+1:]
		}
		for _, variable := range container.Env {
			if variable.Name == "KONG_ROUTER_FLAVOR" {
				flavor = variable.Value
			}
		}
	}
	return version, flavor
}
