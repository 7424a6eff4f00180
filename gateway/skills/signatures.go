package skills

import (
	"context"
	"strings"
)

// SkillLanguage returns the language of a skill of the caller: python or typescript. Errors are *tool.Error.
func (s *Library) SkillLanguage(ctx context.Context, name string) (string, error) {
	found, err := s.skill(ctx, name, 0)
	return found.Language, err
}

// SkillFunctions returns the names of the functions that a skill of the caller exports, nil if they are not known. ok is false if there is no such skill.
func (s *Library) SkillFunctions(ctx context.Context, name string) (names []string, ok bool) {
	found, err := s.skill(ctx, name, 0)
	if err != nil {
		return nil, false
	}
	if len(found.Functions) == maxSkillFunctions { // there may be more
		return nil, true
	}
	for _, signature := range found.Functions {
		function, _, _ := strings.Cut(strings.TrimPrefix(signature, "async "), "(")
		names = append(names, function)
	}
	return names, true
}
