package config

import (
	"errors"
	"slices"
	"strings"
	"time"

	"sallyport/internal/commandtool"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// toolDecoder reads the tools of an upstream that are programs.
type toolDecoder struct{ policyDecoder }

func (d toolDecoder) tools(at path, n *yaml.Node, u *Upstream) {
	d.Each(at, n, func(at path, key, value *yaml.Node) {
		t := commandtool.Tool{Name: key.Value}
		d.tool(at, value, &t)
		u.Tools = append(u.Tools, t)
	})
}

func (d toolDecoder) tool(at path, n *yaml.Node, t *commandtool.Tool) {
	d.Fields(at, n, []key{
		{"description", d.Text(&t.Description)},
		{"run", d.Texts(&t.Run)},
		{"parameters", func(at path, n *yaml.Node) { t.Parameters = d.json(at, n) }},
		{"stdin", d.Text(&t.Stdin)},
		{"output", d.OneOf(&t.Output, commandtool.Text, commandtool.JSON, commandtool.Lines)},
		{"result", func(at path, n *yaml.Node) { t.Result = d.json(at, n) }},
		{"ok_exit", numbers(d.decoder, &t.OKExit)},
		{"read_only", scalar(d.decoder, &t.ReadOnly, yamlstrict.Bool)},
		{"timeout", scalar(d.decoder, &t.Timeout, yamlstrict.Duration)},
	})
}

// numbers reads a list of whole numbers.
func numbers(d *decoder, into *[]int) reader {
	return func(at path, n *yaml.Node) {
		*into = yamlstrict.List(d.Decoder, at, n, func(at path, n *yaml.Node, one *int) { scalar(d, one, yamlstrict.Count)(at, n) })
	}
}

// toolProblems returns the problems of an upstream with tools.
func (u Upstream) toolProblems(at path) (all []problem) {
	if u.Isolate == nil {
		return []problem{{at: at.To("isolate"), fallback: at, message: `an upstream with "tools" always runs its programs in sandboxes; leave out "isolate: false"`}}
	}
	for _, t := range u.Tools {
		under := at.To("tools").To(t.Name)
		if !upstreamName.MatchString(t.Name) {
			all = append(all, problem{at: under, onKey: true, message: `the name of a tool is a letter, then letters, digits, "-" and "_", at most 64`})
		}
		if t.Timeout != 0 {
			all = append(all, between(under.To("timeout"), t.Timeout, 10*time.Millisecond, u.Timeout)...)
		}
		_, err := commandtool.Compile(t)
		if f, ok := errors.AsType[*commandtool.Fault](err); ok {
			p := problem{at: slices.Concat(under, f.At), fallback: under, message: f.Message}
			if len(f.At) > 1 && f.At[0] == "parameters" { // its parts have no places
				p.at, p.message = under.To("parameters"), strings.Join(f.At[1:], ".")+": "+p.message
			}
			all = append(all, p)
		}
	}
	return slices.Concat(all, u.stdioProblems(at), u.isolationProblems(at.To("isolate")))
}
