// Oracle records what Go answers to the cases of ../cases.json and ../yaml.json.
//
// Run it here after adding cases, and commit what it wrote:
//
//	go run . ../cases.json ../yaml.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	yamlv2 "gopkg.in/yaml.v2"
	"sigs.k8s.io/yaml"
)

// Case is one template; Output and Error are Go's answer.
type Case struct {
	Template string          `json:"template"`
	Data     json.RawMessage `json:"data,omitempty"`
	Output   *string         `json:"output,omitempty"`
	Error    string          `json:"error,omitempty"`
	// Ours is Interlock's answer where it differs on purpose.
	Ours *string `json:"ours,omitempty"`
}

// Cases share the root value unless they have data of their own.
type Cases struct {
	Root  json.RawMessage `json:"root"`
	Cases []Case          `json:"cases"`
}

// YamlCase is a text to read, or a JSON value to write.
type YamlCase struct {
	Read  *string         `json:"read,omitempty"`
	Write json.RawMessage `json:"write,omitempty"`
	// JSON is what was read.
	JSON json.RawMessage `json:"json,omitempty"`
	// Text is what was written.
	Text  *string `json:"text,omitempty"`
	Error string  `json:"error,omitempty"`
	// Ours is Interlock's answer where it differs on purpose.
	Ours *string `json:"ours,omitempty"`
}

// functions is KUDO's map: sprig's without the file system and the environment, and toYaml.
func functions() template.FuncMap {
	functions := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "base", "dir", "clean", "ext", "isAbs"} {
		delete(functions, name)
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yamlv2.Marshal(value)
		return string(text), err
	}
	return functions
}

func render(text string, root json.RawMessage) (output string, err error) {
	// yaml.v2 panics on what it cannot write, as template functions may.
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v", caught)
		}
	}()
	var data map[string]interface{}
	if err := json.Unmarshal(root, &data); err != nil {
		return "", err
	}
	parsed, err := template.New("file.yaml").Option("missingkey=error").Funcs(functions()).Parse(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, data); err != nil {
		return "", err
	}
	return out.String(), nil
}

func save(path string, value interface{}) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(value); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o644)
}

func templates(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var cases Cases
	if err := json.Unmarshal(text, &cases); err != nil {
		return err
	}
	for i := range cases.Cases {
		c := &cases.Cases[i]
		root := c.Data
		if root == nil {
			root = cases.Root
		}
		output, err := render(c.Template, root)
		c.Output, c.Error = nil, ""
		if err != nil {
			c.Error = err.Error()
		} else {
			c.Output = &output
		}
	}
	return save(path, cases)
}

func yamls(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var cases []YamlCase
	if err := json.Unmarshal(text, &cases); err != nil {
		return err
	}
	for i := range cases {
		c := &cases[i]
		c.JSON, c.Text, c.Error = nil, nil, ""
		if c.Read != nil {
			value, err := yaml.YAMLToJSON([]byte(*c.Read))
			if err != nil {
				c.Error = err.Error()
			} else {
				c.JSON = value
			}
			continue
		}
		written, err := yaml.JSONToYAML(c.Write)
		if err != nil {
			c.Error = err.Error()
			continue
		}
		text := string(written)
		c.Text = &text
	}
	return save(path, cases)
}

func main() {
	for _, path := range os.Args[1:] {
		record := templates
		if strings.HasSuffix(path, "yaml.json") {
			record = yamls
		}
		if err := record(path); err != nil {
			fmt.Fprintln(os.Stderr, path+":", err)
			os.Exit(1)
		}
	}
}
