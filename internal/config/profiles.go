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
	// ProfileCore is those two. It is always there.
	ProfileCore = "core"
	// ProfileFiles makes and edits files of the workspace without a program.
	ProfileFiles = "files"
	// ProfileSkills saves and loads skills without a program.
	ProfileSkills = "skills"
	// ProfilePrivacy hides personal data in a text and puts it back.
	ProfilePrivacy = "privacy"
	// ProfileStats tells what the caller's programs did.
	ProfileStats = "stats"
	// ProfileCatalog tells of one tool, and of what there is.
	ProfileCatalog = "catalog"
	// ProfileEnvironments installs packages and switches environments.
	ProfileEnvironments = "environments"
	// ProfileWorkflows lets programs find and call workflows as functions. It shows no tools.
	ProfileWorkflows = "workflows"
	// profileAll means all of them.
	profileAll = "all"
)

// Profiles are names of profiles, in the order of AllProfiles; core is not among them.
// The zero value is core alone.
type Profiles []string

// Has reports whether a profile is on; core always is.
func (p Profiles) Has(name string) bool { return name == ProfileCore || slices.Contains(p, name) }

// AllProfiles returns every profile but core.
func AllProfiles() Profiles {
	return Profiles{ProfileFiles, ProfileSkills, ProfilePrivacy, ProfileStats, ProfileCatalog, ProfileEnvironments, ProfileWorkflows}
}

// ParseProfiles makes profiles of names, among which "all" may be. The error says what was probably meant.
func ParseProfiles(names []string) (Profiles, error) {
	for _, name := range names {
		if wrong := profileProblem(name); wrong != "" {
			return nil, fmt.Errorf("there is no profile %.40q; %s", name, wrong)
		}
	}
	return profilesOf(names), nil
}

// profilesOf are in our order, each once.
func profilesOf(names []string) Profiles {
	var on Profiles
	for _, name := range AllProfiles() {
		if slices.Contains(names, name) || slices.Contains(names, profileAll) {
			on = append(on, name)
		}
	}
	return on
}

// profileProblem says what to write instead of a name, "" if it is one.
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

// profileProblems is for a Config that was built by hand: in a file, reading finds it.
func (c *Config) profileProblems(at path) (all []problem) {
	for i, name := range c.Profiles {
		if !slices.Contains(AllProfiles(), name) {
			all = append(all, problem{at: at.Item(i), message: fmt.Sprintf("there is no profile %.40q", name)})
		}
	}
	return all
}
