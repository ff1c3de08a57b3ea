// Command strategicmerge says what a client-side apply makes of an object, by apimachinery itself: one JSON request a
// line on stdin, one JSON answer a line on stdout. kubectl and KUDO apply built-in kinds so.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Request is an object as it was applied last, as it is desired, and as it is live.
type Request struct {
	Original json.RawMessage `json:"original"`
	Modified json.RawMessage `json:"modified"`
	Current  json.RawMessage `json:"current"`
}

// Answer has the merged object, or why there is none.
type Answer struct {
	Merged interface{} `json:"merged"`
	Error  string      `json:"error,omitempty"`
}

func merge(request Request) (interface{}, error) {
	var kind struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(request.Modified, &kind); err != nil {
		return nil, err
	}
	object, err := scheme.Scheme.New(schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	if err != nil {
		return nil, err
	}
	fields, err := strategicpatch.NewPatchMetaFromStruct(object)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(request.Original, request.Modified, request.Current, fields, true)
	if err != nil {
		return nil, err
	}
	text, err := strategicpatch.StrategicMergePatchUsingLookupPatchMeta(request.Current, patch, fields)
	if err != nil {
		return nil, err
	}
	var merged interface{}
	err = json.Unmarshal(text, &merged)
	return tidy(merged), err
}

// tidy removes what apimachinery leaves of a patch in a part that the live object lacks: null, directives, and
// elements that are to be removed.
func tidy(value interface{}) interface{} {
	switch value := value.(type) {
	case map[string]interface{}:
		for name, member := range value {
			if member == nil || strings.HasPrefix(name, "$") {
				delete(value, name)
			} else {
				value[name] = tidy(member)
			}
		}
	case []interface{}:
		kept := []interface{}{}
		for _, element := range value {
			if object, ok := element.(map[string]interface{}); ok && object["$patch"] == "delete" {
				continue
			}
			kept = append(kept, tidy(element))
		}
		return kept
	}
	return value
}

func run() error {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		var request Request
		if err := json.Unmarshal(in.Bytes(), &request); err != nil {
			return err
		}
		var answer Answer
		merged, err := merge(request)
		if err != nil {
			answer.Error = err.Error()
		} else {
			answer.Merged = merged
		}
		line, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", line)
	}
	return in.Err()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
