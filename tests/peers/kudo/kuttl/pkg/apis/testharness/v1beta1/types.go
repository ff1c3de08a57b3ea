// Package v1beta1 declares what `kubectl kudo test` reads of a test suite.
package v1beta1

// DefaultKINDContext is kuttl's.
const DefaultKINDContext = "kind"

// TestSuite has the fields that the command sets.
type TestSuite struct {
	CRDDir            string
	ManifestDirs      []string
	TestDirs          []string
	StartControlPlane bool
	StartKIND         bool
	KINDConfig        string
	KINDContext       string
	SkipDelete        bool
	SkipClusterDelete bool
	Parallel          int
	ArtifactsDir      string
	ReportFormat      string
}

// GroupVersionKind has the one field that the command reads.
type GroupVersionKind struct{ Kind string }

// GroupVersionKind makes the type its own ObjectKind.
func (kind GroupVersionKind) GroupVersionKind() GroupVersionKind { return kind }

// GetObjectKind is that of a runtime.Object.
func (*TestSuite) GetObjectKind() GroupVersionKind { return GroupVersionKind{Kind: "TestSuite"} }
