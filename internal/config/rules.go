package config

import (
	"fmt"
	"maps"
	glob "path"
	"slices"

	"sallyport/internal/tool"
)

// nameRuleProblems checks include, exclude and rename.
func (u Upstream) nameRuleProblems(at path) []problem {
	all := slices.Concat(globProblems(at.To("include"), u.Include), globProblems(at.To("exclude"), u.Exclude))
	under, taken := at.To("rename"), map[string]string{}
	for _, wire := range sortedKeys(u.Rename) {
		name := u.Rename[wire]
		other, twice := taken[name]
		taken[name] = wire
		switch {
		case wire == "":
			all = append(all, problem{at: under.To(wire), onKey: true, message: "no tool has an empty name"})
		case name == "":
			all = append(all, problem{at: under.To(wire), message: fmt.Sprintf("the new name of %.40q is empty", wire)})
		case tool.Identifier(name) != name:
			all = append(all, problem{at: under.To(wire), message: fmt.Sprintf("%.40q cannot be a name in a program; %q can", name, tool.Identifier(name))})
		case twice:
			all = append(all, problem{at: under.To(wire), message: fmt.Sprintf("%.40q and %.40q would both be called %.40q", other, wire, name)})
		}
	}
	return all
}

func globProblems(at path, globs []string) []problem {
	var all []problem
	for i, pattern := range globs {
		if pattern == "" {
			all = append(all, problem{at: at.Item(i), message: "an empty glob matches no tool"})
		} else if _, err := glob.Match(pattern, ""); err != nil {
			all = append(all, problem{at: at.Item(i), message: `this is not a glob: "*", "?" and [a-z] are special, and a "\" before them escapes them`})
		}
	}
	return all
}

func sortedKeys[M ~map[string]string](m M) []string { return slices.Sorted(maps.Keys(m)) }
