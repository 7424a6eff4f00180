package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"sallyport/gateway/trust"
	"sallyport/internal/skill"
)

// skillsJSON is what list --json prints.
type skillsJSON struct {
	Skills []skillJSON `json:"skills"`
}

// skillJSON is a skill in a list.
type skillJSON struct {
	Name        string `json:"name"`
	Version     int    `json:"version,omitempty"`
	Language    string `json:"language,omitempty"`
	Description string `json:"description,omitempty"`
	// Groups restricts the skill to members of these groups; none: all principals see it.
	Groups []string `json:"groups,omitempty"`
	// Problem is why it cannot be read.
	Problem string `json:"problem,omitempty"`
}

// line returns the skill as text.
func (j skillJSON) line() string {
	if j.Problem != "" {
		return j.Name + ": " + trust.Visible(j.Problem)
	}
	about, _, _ := strings.Cut(j.Description, "\n")
	audience := ""
	if len(j.Groups) > 0 {
		audience = ", for " + trust.Visible(strings.Join(j.Groups, ", "))
	}
	return fmt.Sprintf("%s %d (%s%s): %s", j.Name, j.Version, j.Language, audience, trust.Visible(about))
}

func (a *app) skillsList(s *skill.Store, owner string, shared, asJSON bool) error {
	names := s.Names(owner)
	if shared {
		names = s.SharedNames()
	}
	var list skillsJSON
	var lines []string
	for _, name := range names {
		one := skillJSON{Name: name}
		if found, err := loadSkill(s, owner, name, 0, shared); err != nil {
			one.Problem = err.Error()
		} else {
			one.Version, one.Language, one.Description, one.Groups = found.Version, found.Language, found.Description, found.Groups
		}
		list.Skills, lines = append(list.Skills, one), append(lines, one.line())
	}
	switch {
	case asJSON:
		return a.PrintJSON(list)
	case len(lines) == 0:
		a.Say("no skills")
		return nil
	}
	return a.Print(strings.Join(lines, "\n"))
}

// reviewsJSON is what review --json prints.
type reviewsJSON struct {
	Skills []reviewJSON `json:"skills"`
}

// reviewJSON is a skill that waits for a decision.
type reviewJSON struct {
	Name   string `json:"name"`
	Author string `json:"author,omitempty"`
	// Changed is set if it is shared, and its files are not those that were approved.
	Changed bool   `json:"changed"`
	Digest  string `json:"digest"`
	// Diff is the difference to what is shared now.
	Diff string `json:"diff"`
}

// text returns the review for people.
func (r reviewJSON) text() string {
	why := "wants to share it"
	if r.Changed {
		why = "shared it, and its files have changed since they were approved"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %s\n\n", r.Name, cmp.Or(trust.Visible(r.Author), "somebody"), why)
	for line := range strings.Lines(r.Diff) {
		b.WriteString("  " + line)
	}
	fmt.Fprintf(&b, "\n  to share it: sallyport skills approve %s@%s\n\n", r.Name, r.Digest[:12])
	return b.String()
}

func (a *app) skillsReview(s *skill.Store, name string, asJSON bool) error {
	names := append(s.Pending(), s.SharedNames()...)
	slices.Sort(names)
	var list reviewsJSON
	var b strings.Builder
	for _, each := range slices.Compact(names) {
		if one, waits := reviewOf(s, each); waits && (name == "" || each == name) {
			list.Skills = append(list.Skills, one)
			b.WriteString(one.text())
		}
	}
	switch {
	case name != "" && !slices.Contains(names, name):
		return noSkill(name, names, skill.ErrNotFound)
	case asJSON:
		return a.PrintJSON(list)
	case b.Len() == 0:
		a.Say("no skill waits for review")
		return nil
	}
	return a.Print(b.String())
}

// reviewOf returns what there is to decide about a skill.
func reviewOf(s *skill.Store, name string) (r reviewJSON, waits bool) {
	shared, err := s.LoadShared(name, 0)
	next, pending := s.LoadPending(name)
	switch {
	case pending == nil:
	case errors.Is(err, skill.ErrChanged):
		next, shared, r.Changed = shared, skill.Skill{}, true
	default:
		return r, false
	}
	r.Name, r.Author, r.Digest = name, next.Author, next.Digest()
	r.Diff = string(diff.Diff("shared", []byte(trust.Visible(skillText(shared))), "waits", []byte(trust.Visible(skillText(next)))))
	return r, true
}
