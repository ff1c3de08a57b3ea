package main

import (
	"strings"
	"text/template"
	"time"
)

// Measure is the templates of a package, in their order, and how often all of them are rendered.
type Measure struct {
	Templates []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	} `json:"templates"`
	Repetitions int `json:"repetitions"`
}

// run tells what is rendered, how long parsing and rendering all of it took, and how long rendering alone took.
func (m *Measure) run(data map[string]interface{}) (Answer, error) {
	functions := functions()
	var answer Answer
	parsed := make([]*template.Template, len(m.Templates))
	began := time.Now()
	for range m.Repetitions {
		for i, file := range m.Templates {
			var err error
			if parsed[i], err = parse(file.Name, file.Template, functions); err != nil {
				return answer, err
			}
			if _, err = render(parsed[i], data); err != nil {
				return answer, err
			}
		}
	}
	answer.Both = time.Since(began).Nanoseconds()
	texts := make([]string, len(parsed))
	began = time.Now()
	for range m.Repetitions {
		for i := range parsed {
			var err error
			if texts[i], err = render(parsed[i], data); err != nil {
				return answer, err
			}
		}
	}
	answer.Rendered = time.Since(began).Nanoseconds()
	answer.Output = strings.Join(texts, "")
	return answer, nil
}
