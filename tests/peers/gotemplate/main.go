// Command gotemplate renders templates with Go's own engine, sprig 2.22.0 and KUDO's functions, and reads keys and
// certificates with Go's crypto, or measures the rendering: one JSON request a line on stdin, one JSON answer a line on
// stdout.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v2"
)

// Request is a template with its values, or a text of PEM blocks.
type Request struct {
	Name     string                 `json:"name"`
	Template string                 `json:"template"`
	Data     map[string]interface{} `json:"data"`
	// Inspect is described and not rendered, if it is there.
	Inspect string `json:"inspect"`
	// Measure is rendered many times with the values, if it is there.
	Measure *Measure `json:"measure"`
}

// Answer has the rendered text, or why there is none.
type Answer struct {
	Output string `json:"output"`
	Error  string `json:"error,omitempty"`
	// Both and Rendered are nanoseconds of what was measured.
	Both     int64 `json:"both,omitempty"`
	Rendered int64 `json:"rendered,omitempty"`
}

// functions is KUDO's map: sprig's without the file system and the environment, and toYaml.
func functions() template.FuncMap {
	functions := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "base", "dir", "clean", "ext", "isAbs"} {
		delete(functions, name)
	}
	functions["toYaml"] = func(value interface{}) (string, error) {
		text, err := yaml.Marshal(value)
		return string(text), err
	}
	return functions
}

func answer(request Request) (output string, err error) {
	// yaml.v2 panics on what it cannot write.
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("panic: %v", caught)
		}
	}()
	if request.Inspect != "" {
		return inspect(request.Inspect)
	}
	parsed, err := parse(request.Name, request.Template, functions())
	if err != nil {
		return "", err
	}
	return render(parsed, request.Data)
}

func parse(name, text string, functions template.FuncMap) (*template.Template, error) {
	return template.New(name).Option("missingkey=error").Funcs(functions).Parse(text)
}

func render(parsed *template.Template, data map[string]interface{}) (string, error) {
	var out bytes.Buffer
	err := parsed.Execute(&out, data)
	return out.String(), err
}

func main() {
	lines := bufio.NewReaderSize(os.Stdin, 1<<20)
	decoder := json.NewDecoder(lines)
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for decoder.More() {
		var request Request
		if err := decoder.Decode(&request); err != nil {
			fmt.Fprintln(os.Stderr, "gotemplate:", err)
			os.Exit(2)
		}
		var said Answer
		var err error
		if request.Measure != nil {
			said, err = request.Measure.run(request.Data)
		} else {
			said.Output, err = answer(request)
		}
		if err != nil {
			said = Answer{Error: err.Error()}
		}
		if err := encoder.Encode(said); err != nil {
			fmt.Fprintln(os.Stderr, "gotemplate:", err)
			os.Exit(2)
		}
		// Whoever measures waits for the answer before the next request; the others write all of theirs first.
		if request.Measure != nil {
			_ = out.Flush()
		}
	}
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "gotemplate:", err)
		os.Exit(2)
	}
}
