package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	glob "path"
	"slices"
	"strings"

	"sallyport/internal/policy"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
	"sallyport/internal/yamlstrict"

	"gopkg.in/yaml.v3"
)

// The words of a policy.
var (
	defaultActions = []string{string(policy.Allow), string(policy.Ask), string(policy.Deny)}
	ruleActions    = append(slices.Clone(defaultActions), string(policy.Limit))
	flowModes      = []string{string(policy.FlowAsk), string(policy.FlowDeny), string(policy.FlowOff)}
	limitPeriods   = []string{"minute", "hour", "day", "execution", "session"}
	limitScopes    = []string{"principal", "session", "execution", "everyone"}
)

// policyDecoder reads the rules of the policy.
type policyDecoder struct{ *decoder }

func (d policyDecoder) policy(at path, n *yaml.Node, s *policy.Settings) {
	seen := d.Fields(at, n, []key{
		{"default", d.OneOf((*string)(&s.Default), defaultActions...)},
		{"flow", d.OneOf((*string)(&s.Flow), flowModes...)},
		{"isolate", d.expression(&s.Isolate)},
		{"rules", func(at path, n *yaml.Node) { s.Rules = yamlstrict.List(d.Decoder, at, n, d.rule) }},
		{"tests", func(at path, n *yaml.Node) { s.Tests = yamlstrict.List(d.Decoder, at, n, d.policyTest) }},
	})
	s.On = len(seen) == 0 || seen["default"] || seen["rules"] // flow or isolate alone does not turn the policy on
}

func (d policyDecoder) rule(at path, n *yaml.Node, r *policy.Rule) {
	d.Fields(at, n, []key{
		{"name", d.Text(&r.Name)},
		{"tools", d.Texts(&r.Tools)},
		{"when", d.expression(&r.When)},
		{"then", d.OneOf((*string)(&r.Then), ruleActions...)},
		{"message", d.Text(&r.Message)},
		{"limit", func(at path, n *yaml.Node) { r.Limit = &policy.Limits{}; d.limit(at, n, r.Limit) }},
	})
}

func (d policyDecoder) limit(at path, n *yaml.Node, l *policy.Limits) {
	d.Fields(at, n, []key{
		{"calls", scalar(d.decoder, &l.Calls, yamlstrict.Count)},
		{"per", d.OneOf(&l.Per, limitPeriods...)},
		{"by", d.OneOf(&l.By, limitScopes...)},
		{"cost", d.expression(&l.Cost)},
	})
}

// expression reads a text without expanding references, whose values must not become part of an expression.
func (d policyDecoder) expression(into *string) reader {
	return func(at path, n *yaml.Node) {
		if d.Allowed(at, n) && n.Kind == yaml.ScalarNode && (n.Tag == "!!bool" || n.Tag == "!!int") || d.IsText(at, n) {
			*into = n.Value // "when: true" is one
		}
	}
}

func (d policyDecoder) policyTest(at path, n *yaml.Node, t *policy.Test) {
	t.Line = n.Line
	d.Fields(at, n, []key{
		{"call", d.Text(&t.Call)},
		{"args", func(at path, n *yaml.Node) { t.Args = d.json(at, n) }},
		{"principal", d.Text(&t.Principal)},
		{"groups", d.Texts(&t.Groups)},
		{"remote", scalar(d.decoder, &t.Remote, yamlstrict.Bool)},
		{"annotations", func(at path, n *yaml.Node) { t.Annotations = mapOf(d.decoder, at, n, yamlstrict.Bool) }},
		{"labels", d.Texts(&t.Labels)},
		{"read", d.Texts(&t.Read)},
		{"calls", func(at path, n *yaml.Node) {
			t.Calls = mapOf(d.decoder, at, n, func(n *yaml.Node) (int64, string) { count, wrong := yamlstrict.Count(n); return int64(count), wrong })
		}},
		{"expect", d.OneOf((*string)(&t.Expect), defaultActions...)},
		{"rule", d.Text(&t.Rule)},
	})
}

func mapOf[T any](d *decoder, at path, n *yaml.Node, parse func(*yaml.Node) (T, string)) map[string]T {
	all := map[string]T{}
	d.Each(at, n, func(under path, key, value *yaml.Node) {
		var one T
		scalar(d, &one, parse)(under, value)
		all[key.Value] = one
	})
	return all
}

// json reads a mapping as the JSON arguments of a call.
func (d policyDecoder) json(at path, n *yaml.Node) json.RawMessage {
	if !d.AllowedDeep(at, n) || !d.Kind(at, n, yaml.MappingNode, "a mapping") {
		return nil
	}
	var value map[string]any
	if err := n.Decode(&value); err != nil {
		d.Fail(at, n, "%s is not a JSON object", label(at))
		return nil
	}
	data, err := json.Marshal(value)
	if err != nil {
		d.Fail(at, n, "%s has a value that JSON does not have, or a key that is not a string", label(at))
	}
	return data
}

// policyProblems returns the problems of rules and tests, each at its key, and unknown upstreams.
func (c *Config) policyProblems(at path) []problem {
	var all []problem
	for _, p := range policy.Check(c.Policy) {
		under := at
		if p.Rule >= 0 {
			part := "rules"
			if p.InTests {
				part = "tests"
			}
			under = at.To(part).Item(p.Rule)
		}
		all = append(all, c.policyProblem(under, p))
	}
	for i, r := range c.Policy.Rules {
		for j, g := range r.Tools {
			if wrong := c.unknownUpstream(g); wrong != "" {
				all = append(all, problem{at: at.To("rules").Item(i).To("tools").Item(j), message: wrong})
			}
		}
	}
	for i, t := range c.Policy.Tests {
		if wrong := c.unknownUpstream(t.Call); wrong != "" {
			all = append(all, problem{at: at.To("tests").Item(i).To("call"), message: wrong})
		}
	}
	return all
}

// policyProblem returns a problem at its key, or at the parent if the key is missing.
func (c *Config) policyProblem(under path, p policy.Problem) problem {
	owner := under
	if p.Key != "" {
		under = append(slices.Clip(under), strings.Split(p.Key, ".")...)
	}
	if p.Item >= 0 {
		under = under.Item(p.Item)
	}
	return problem{at: under, fallback: owner, message: p.Message, inside: p.At}
}

// unknownUpstream returns a message if the upstream of a tool glob is unknown, else "".
func (c *Config) unknownUpstream(text string) string {
	up, _, ok := strings.Cut(text, ".")
	if !ok || strings.ContainsAny(up, `*?[\`) || c.hasPlugin(up) {
		return ""
	}
	var names []string
	for _, u := range c.Upstreams {
		if u.ID == tool.Identifier(up) {
			return ""
		}
		names = append(names, u.Name)
	}
	if near := suggest.Of(up, names); near != "" {
		return fmt.Sprintf("there is no upstream %.40q; did you mean %q?", up, near)
	}
	return fmt.Sprintf("there is no upstream %.40q; there are %s", up, cmp.Or(someOf(names), "none"))
}

// someOf joins the first few names.
func someOf(names []string) string {
	const few = 8
	if len(names) > few {
		return strings.Join(names[:few], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

func (d policyDecoder) toolLabels(at path, n *yaml.Node, into *map[string][]string) {
	*into = map[string][]string{}
	d.Each(at, n, func(under path, key, value *yaml.Node) {
		var labels []string
		d.Texts(&labels)(under, value)
		(*into)[key.Value] = labels
	})
}

// knownLabels are the labels with a meaning for data-flow rules.
var knownLabels = []string{policy.Private, policy.Untrusted, policy.External}

func (u Upstream) labelProblems(at path) []problem {
	all := labelProblems(at.To("labels"), u.Labels)
	for _, tools := range slices.Sorted(maps.Keys(u.ToolLabels)) {
		under := at.To("tool_labels").To(tools)
		if _, err := glob.Match(tools, ""); err != nil || tools == "" {
			all = append(all, problem{at: under, onKey: true, message: "this is not a valid glob of tool names"})
		}
		all = append(all, labelProblems(under, u.ToolLabels[tools])...)
	}
	return all
}

func labelProblems(at path, labels []string) []problem {
	var all []problem
	for i, l := range labels {
		switch near := suggest.Of(l, knownLabels); {
		case slices.Contains(knownLabels, l):
		case near != "":
			all = append(all, problem{at: at.Item(i), message: fmt.Sprintf("%.40q is nearly a label that has a meaning; did you mean %q?", l, near)})
		case !upstreamName.MatchString(l):
			all = append(all, problem{at: at.Item(i), message: fmt.Sprintf(`%.40q cannot be a label: a letter, then letters, digits, "-" and "_", at most 64`, l)})
		}
	}
	return all
}

// LabelsOf returns the labels of a tool by its names, on the wire and in programs, or of a method (resources/read), sorted.
func (u Upstream) LabelsOf(names ...string) []string {
	all := slices.Clone(u.Labels)
	for tools, labels := range u.ToolLabels {
		if slices.ContainsFunc(names, func(name string) bool { ok, _ := glob.Match(tools, name); return ok }) {
			all = append(all, labels...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Labeled returns the upstreams, and in the same form the plugins, that have labels or whose tools have some.
func (c *Config) Labeled() (all []Upstream) {
	for _, u := range c.Upstreams {
		if u.hasLabels() {
			all = append(all, u)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Plugins)) {
		if u := c.Plugins[name].Labeled(name); u.hasLabels() {
			all = append(all, u)
		}
	}
	return all
}

func (u Upstream) hasLabels() bool { return len(u.Labels) > 0 || len(u.ToolLabels) > 0 }
