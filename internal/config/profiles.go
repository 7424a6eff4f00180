package config

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/internal/suggest"

	"gopkg.in/yaml.v3"
)

// The profiles: groups of tools that clients see in addition to search_tools and execute_code.
const (
	// ProfileCore is those two tools. It is always on.
	ProfileCore = "core"
	// ProfileFiles makes and edits files of the workspace without a program.
	ProfileFiles = "files"
	// ProfileSkills saves and loads skills without a program.
	ProfileSkills = "skills"
	// ProfilePrivacy hides personal data in a text and puts it back.
	ProfilePrivacy = "privacy"
	// ProfileStats shows what the caller's programs did.
	ProfileStats = "stats"
	// ProfileCatalog describes one tool, and lists the catalog.
	ProfileCatalog = "catalog"
	// ProfileEnvironments installs packages and switches environments.
	ProfileEnvironments = "environments"
	// ProfileWorkflows lets programs find and call workflows as functions. It shows no tools.
	ProfileWorkflows = "workflows"
	// ProfileTasks works on a task in words.
	ProfileTasks = "tasks"
	// profileAll means all of them.
	profileAll = "all"
)

// Profiles are names of profiles without core, in the order of AllProfiles.
// The zero value is core alone.
type Profiles []string

// Has reports whether a profile is on; core always is.
func (p Profiles) Has(name string) bool { return name == ProfileCore || slices.Contains(p, name) }

// AllProfiles returns every profile but core.
func AllProfiles() Profiles {
	return Profiles{ProfileFiles, ProfileSkills, ProfilePrivacy, ProfileStats, ProfileCatalog, ProfileEnvironments, ProfileWorkflows, ProfileTasks}
}

// ParseProfiles returns the profiles with these names, which may include "all". The error has a suggestion.
func ParseProfiles(names []string) (Profiles, error) {
	for _, name := range names {
		if wrong := profileProblem(name); wrong != "" {
			return nil, fmt.Errorf("there is no profile %.40q; %s", name, wrong)
		}
	}
	return profilesOf(names), nil
}

// profilesOf returns the profiles in the order of AllProfiles, without duplicates.
func profilesOf(names []string) Profiles {
	var on Profiles
	for _, name := range AllProfiles() {
		if slices.Contains(names, name) || slices.Contains(names, profileAll) {
			on = append(on, name)
		}
	}
	return on
}

// profileProblem returns a suggestion for an unknown name, "" for a profile.
func profileProblem(name string) string {
	words := append([]string{ProfileCore}, append(AllProfiles(), profileAll)...)
	if slices.Contains(words, name) {
		return ""
	}
	if near := suggest.Of(name, words); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "use " + strings.Join(words, ", ")
}

func (d *decoder) profiles(into *Profiles) reader {
	return func(at path, n *yaml.Node) {
		var names []string
		d.Texts(&names)(at, n)
		for i, name := range names {
			if wrong := profileProblem(name); wrong != "" && !d.Bad(at.Item(i)) {
				d.Fail(at.Item(i), n.Content[i], "there is no profile %.40q; %s", name, wrong)
			}
		}
		*into = profilesOf(names)
	}
}

// profileProblems checks a Config that was built by hand. For a file the decoder does that.
func (c *Config) profileProblems(at path) (all []problem) {
	for i, name := range c.Profiles {
		if !slices.Contains(AllProfiles(), name) {
			all = append(all, problem{at: at.Item(i), message: fmt.Sprintf("there is no profile %.40q", name)})
		}
	}
	return all
}

// The servers that the gateway can replace for their clients.
const (
	// CompatCodeExecution is code-execution-mcp.
	CompatCodeExecution = "code-execution-mcp"
	// CompatCodeExecutor is mcp_code_executor.
	CompatCodeExecutor = "mcp_code_executor"
	// CompatHTTP is the HTTP API of code-executor.
	CompatHTTP = "code-executor"
)

var compats = []string{CompatCodeExecution, CompatCodeExecutor, CompatHTTP}

// Compats returns the values of compat.
func Compats() []string { return slices.Clone(compats) }
