package supervisor

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// user with a bearer token; further ones get client certificates (`user NAME` on the input).
type user struct {
	name     string // of the kubeconfig
	username string
	groups   []string
}

// fixedUsers are in every control plane. `interlock` is the service account that the rendered
// manifests bind to, so that they are applied unchanged; the components have the names that
// Kubernetes' own roles are bound to.
var fixedUsers = []user{
	{"admin", "admin", []string{"system:masters"}},
	{"newcomer", "newcomer", []string{"system:authenticated"}},
	{"interlock", "system:serviceaccount:interlock-system:interlock",
		[]string{"system:serviceaccounts", "system:serviceaccounts:interlock-system", "system:authenticated"}},
	{"kube-controller-manager", "system:kube-controller-manager", []string{"system:authenticated"}},
	{"kube-scheduler", "system:kube-scheduler", []string{"system:authenticated"}},
	{"kwok", "kwok", []string{"system:authenticated"}},
}

var tokenSalt = rand.Text()

// token of a fixed user, different in every control plane.
func token(name string) string { return name + "-" + tokenSalt }

func (p *plane) writeTokens() error {
	var file strings.Builder
	for _, u := range fixedUsers {
		fmt.Fprintf(&file, "%s,%s,%s,%q\n", token(u.name), u.username, u.name, strings.Join(u.groups, ","))
	}
	return os.WriteFile(p.path("tokens.csv"), []byte(file.String()), 0o600)
}

func (p *plane) writeServiceAccountKey() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(p.path("sa.key"), pem.EncodeToMemory(block), 0o600)
}

func (p *plane) writeKubeconfigs() error {
	for _, u := range fixedUsers {
		if err := p.writeKubeconfig(u.name, "token: "+token(u.name)); err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) writeKubeconfig(name, credentials string) error {
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: testbed
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: user
  user:
    %s
contexts:
- name: testbed
  context: {cluster: testbed, user: user}
current-context: testbed
`, p.server(), base64.StdEncoding.EncodeToString(p.ca.pem), credentials)
	return os.WriteFile(p.kubeconfigPath(name), []byte(text), 0o600)
}

// userFile keeps file names apart from what a user name may hold.
var userFile = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// addUser makes a user with a client certificate and no right but its groups', and answers
// its kubeconfig. Asked twice, the second certificate replaces the first in the file.
func (p *plane) addUser(name string, groups []string) (string, error) {
	for _, u := range fixedUsers {
		if u.name == name {
			return "", fmt.Errorf("%s is a fixed user: its kubeconfig is %s", name, p.kubeconfigPath(name))
		}
	}
	cert, key, err := p.ca.client(name, groups)
	if err != nil {
		return "", err
	}
	file := "user-" + userFile.ReplaceAllStringFunc(name, func(s string) string { return "%" + hex.EncodeToString([]byte(s)) })
	credentials := fmt.Sprintf("client-certificate-data: %s\n    client-key-data: %s",
		base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key))
	if err := p.writeKubeconfig(file, credentials); err != nil {
		return "", err
	}
	return filepath.Clean(p.kubeconfigPath(file)), nil
}
