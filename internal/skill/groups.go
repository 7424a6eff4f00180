package skill

import (
	"fmt"
	"strings"
	"unicode"

	"gopkg.in/yaml.v3"

	"sallyport/internal/sanitize"
)

// Limits of the groups of a skill; the length is in bytes.
const (
	maxGroups = 50
	maxGroup  = 200
)

// CheckGroups returns why a skill cannot have these groups. None are valid: then all principals see it.
func CheckGroups(names []string) error {
	if len(names) > maxGroups {
		return fmt.Errorf("a skill has at most %d groups", maxGroups)
	}
	for _, name := range names {
		if name == "" || len(name) > maxGroup || strings.TrimSpace(name) != name || strings.ContainsFunc(name, unprintable) {
			return fmt.Errorf("%q cannot name a group: 1 to %d bytes that can be printed, without spaces around them", sanitize.Line(name, 40), maxGroup)
		}
	}
	return nil
}

func unprintable(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }

// groups reads the groups of a SKILL.md. It accepts no other form than a list of names, since a restriction that is not
// understood must not be lost.
func groups(n *yaml.Node) (names []string, err error) {
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
				return nil, groupsError(n)
			}
			names = append(names, item.Value)
		}
	}
	if len(names) == 0 {
		return nil, groupsError(n)
	}
	if err := CheckGroups(names); err != nil {
		return nil, fmt.Errorf("SKILL.md, line %d: %w", n.Line+1, err)
	}
	return names, nil
}

func groupsError(n *yaml.Node) error {
	return fmt.Errorf("SKILL.md, line %d: groups must be a list of names, at least one; without the key, all principals see the skill", n.Line+1)
}
