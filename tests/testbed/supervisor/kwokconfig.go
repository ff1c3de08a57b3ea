package supervisor

import (
	"embed"
	"fmt"
	"os"
	"strings"
)

// How fake nodes, pods and volumes behave: kwok has no rules of its own. The node and volume
// stages are those of sigs.k8s.io/kwok v0.8.0 (Apache-2.0); the pod stages are ours.
//
//go:embed kwok/*.yaml
var stages embed.FS

// writeKwokConfig puts the stages into one file.
func (p *plane) writeKwokConfig() error {
	entries, err := stages.ReadDir("kwok")
	if err != nil {
		return err
	}
	var parts []string
	for _, entry := range entries {
		text, err := stages.ReadFile("kwok/" + entry.Name())
		if err != nil {
			return err
		}
		parts = append(parts, strings.TrimSpace(string(text)))
	}
	replace := strings.NewReplacer(
		"POD_READY_AFTER_MS", fmt.Sprint(p.o.podReadyAfter.Milliseconds()),
		"POD_DIR", p.path("pods"),
		"POD_LOG", p.path("pods.log"),
	)
	if err := os.WriteFile(p.path("pods.log"), []byte("2026-01-01T00:00:00Z stdout F a fake pod says hello\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(p.path("kwok.yaml"), []byte(replace.Replace(strings.Join(parts, "\n---\n"))+"\n"), 0o600)
}
