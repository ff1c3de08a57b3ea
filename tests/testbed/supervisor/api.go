package supervisor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client is as much of an API client as a supervisor needs.
type client struct {
	base  string
	token string
	http  *http.Client
}

func newClient(base string, pool *x509.CertPool, token string) *client {
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
	return &client{base, token, &http.Client{Transport: transport, Timeout: 10 * time.Second}}
}

func (c *client) do(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, err
}

func (c *client) get(ctx context.Context, path string) ([]byte, error) {
	code, text, err := c.do(ctx, http.MethodGet, path, nil)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("GET %s: %d: %.2000s", path, code, text)
	}
	return text, err
}

func (c *client) readyz(ctx context.Context) error {
	_, err := c.get(ctx, "/readyz?verbose")
	return err
}

func (c *client) exists(path string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := c.get(ctx, path)
		return err
	}
}

func (c *client) nodeReady(ctx context.Context) error {
	text, err := c.get(ctx, "/api/v1/nodes/testbed-node")
	if err != nil {
		return err
	}
	var node struct {
		Spec struct {
			Taints []struct{ Key string }
		}
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal(text, &node); err != nil {
		return err
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("the node is tainted: %v", node.Spec.Taints)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return nil
		}
	}
	return fmt.Errorf("the node's conditions: %v", node.Status.Conditions)
}

//go:embed objects/*.json
var objects embed.FS

// applyObjects creates what every control plane has from the start; objects/*.json is a list
// of {"path": where to POST, "object": what}.
func (p *plane) applyObjects(ctx context.Context) error {
	text, err := objects.ReadFile("objects/base.json")
	if err != nil {
		return err
	}
	var list []struct {
		Path   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return fmt.Errorf("objects/base.json: %w", err)
	}
	for _, entry := range list {
		err := p.await(ctx, entry.Path+" is written", func(ctx context.Context) error {
			code, text, err := p.api.do(ctx, http.MethodPost, entry.Path, entry.Object)
			if err != nil {
				return err
			}
			if code != http.StatusCreated && code != http.StatusConflict {
				return fmt.Errorf("POST %s: %d: %s", entry.Path, code, text)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
