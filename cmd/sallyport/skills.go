package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/gateway/trust"
	"sallyport/internal/audit"
	"sallyport/internal/skill"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
)

func skillsCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "skills COMMAND",
		Short: "see skills that programs saved, and decide which are shared",
		Long: `Skills are code that programs saved to import it again. Each principal has their
own. With skills.scope: shared in upstreams.yaml a skill can be offered to all
principals, or to groups that it names, once it is approved here. An approval is
for the current files: if they change, the shared skill is not used until it is
approved again.`,
		Example: `  sallyport skills review
  sallyport skills approve weekly-report@9f86d081884c`,
	}
	return cli.Group(cmd, skillsListCommand(a), skillsShowCommand(a), skillsReviewCommand(a), skillsApproveCommand(a), skillsRejectCommand(a), skillsRemoveCommand(a))
}

// addOwnerFlags adds the flags that select the owner of skills.
func addOwnerFlags(cmd *cobra.Command, owner *string, shared *bool) {
	cmd.Flags().StringVar(owner, "principal", "", "those of `NAME`; default: those of local clients")
	cmd.Flags().BoolVar(shared, "shared", false, "those that are shared")
	cmd.MarkFlagsMutuallyExclusive("principal", "shared")
}

func skillsListCommand(a *app) *cobra.Command {
	var owner string
	var shared, asJSON bool
	cmd := &cobra.Command{
		Use: "list [flags]", Short: "list skills",
		Long:    "List shows the skills of local clients, those of a principal, or those that are shared.",
		Example: "  sallyport skills list\n  sallyport skills list --shared",
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			return a.withSkills(func(s *skill.Store) error { return a.skillsList(s, owner, shared, asJSON) })
		},
	}
	addOwnerFlags(cmd, &owner, &shared)
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func skillsShowCommand(a *app) *cobra.Command {
	var owner string
	var shared bool
	var version int
	cmd := &cobra.Command{
		Use: "show [flags] NAME", Short: "print a skill, all of its files",
		Long:    "Show prints every file of a skill. Characters that do not show are written as <U+200B>.",
		Example: "  sallyport skills show weekly-report\n  sallyport skills show weekly-report --version 2",
		Args:    cli.OneName,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withSkills(func(s *skill.Store) error {
				one, err := loadSkill(s, owner, args[0], version, shared)
				if err != nil && !errors.Is(err, skill.ErrChanged) {
					return a.skillError(s, owner, shared, args[0], err)
				}
				return a.Print(trust.Visible(skillText(one)))
			})
		},
	}
	addOwnerFlags(cmd, &owner, &shared)
	cmd.Flags().IntVar(&version, "version", 0, "version `N`; default: the current one")
	return cmd
}

func skillsReviewCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "review [flags] [NAME]", Short: "show the skills that wait to be shared",
		Long: `Review shows each skill that waits to be shared, and each shared one with files that have
changed since they were approved, as a difference to what is shared now.
Characters that do not show are written as <U+200B>.`,
		Example: "  sallyport skills review\n  sallyport skills review weekly-report",
		Args:    cli.MaybeName,
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withSkills(func(s *skill.Store) error { return a.skillsReview(s, strings.Join(args, ""), asJSON) })
		},
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func skillsApproveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "approve NAME[@DIGEST]...", Short: "share skills that wait",
		Long: `Approve shares skills with all principals, or with the groups in their SKILL.md. With
@DIGEST behind the name, as review prints it, only what you have seen is approved.`,
		Example: "  sallyport skills approve weekly-report@9f86d081884c",
		Args:    cli.SomeNames("name"),
		RunE: func(_ *cobra.Command, names []string) error {
			return a.withSkills(func(s *skill.Store) error { return a.skillsApprove(s, names) })
		},
	}
}

func skillsRejectCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "reject NAME...", Short: "remove skills that wait to be shared",
		Long:    "Reject removes what waits for review. The author keeps their own.",
		Example: "  sallyport skills reject weekly-report",
		Args:    cli.SomeNames("name"),
		RunE: func(_ *cobra.Command, names []string) error {
			return a.withSkills(func(s *skill.Store) error {
				return a.eachSkill(names, "rejected", s.Reject, func() []string { return s.Pending() })
			})
		},
	}
}

func skillsRemoveCommand(a *app) *cobra.Command {
	var owner string
	var shared bool
	cmd := &cobra.Command{
		Use: "rm [flags] NAME...", Short: "remove skills with all their versions",
		Long:    "Rm removes skills of local clients, of a principal, or shared ones.",
		Example: "  sallyport skills rm weekly-report\n  sallyport skills rm --shared weekly-report",
		Args:    cli.SomeNames("name"),
		RunE: func(_ *cobra.Command, names []string) error {
			return a.withSkills(func(s *skill.Store) error {
				remove, list := func(name string) error { return s.Remove(owner, name) }, func() []string { return s.Names(owner) }
				if shared {
					remove, list = s.RemoveShared, s.SharedNames
				}
				return a.eachSkill(names, "removed", remove, list)
			})
		},
	}
	addOwnerFlags(cmd, &owner, &shared)
	return cmd
}

// withSkills calls use with the skill store, which is on servers if the settings say so. It works while a gateway runs.
func (a *app) withSkills(use func(*skill.Store) error) (err error) {
	dir := a.DataDir()
	if dir == "" {
		return &tool.Error{Kind: tool.Invalid, Message: "there is no data directory", Hint: "set HOME or XDG_DATA_HOME"}
	}
	servers, err := a.connectServers()
	if err != nil {
		return err
	}
	if servers != nil {
		defer func() { err = errors.Join(err, servers.Close()) }()
	}
	skills, err := skill.Open(filepath.Join(dir, "skills"), servers, a.Logger(slog.LevelWarn))
	if err != nil {
		return err
	}
	return use(skills)
}

func loadSkill(s *skill.Store, owner, name string, version int, shared bool) (skill.Skill, error) {
	if plainName, err := skill.Name(name); err == nil {
		name = plainName
	}
	if shared {
		return s.LoadShared(name, version)
	}
	return s.Load(owner, name, version)
}

// skillText returns all files of a skill as one text.
func skillText(one skill.Skill) string {
	if one.Name == "" {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "-- SKILL.md --\n%s", one.Format())
	for _, path := range slices.Sorted(maps.Keys(one.Files)) {
		fmt.Fprintf(&b, "-- %s --\n%s\n", path, strings.TrimSuffix(string(one.Files[path]), "\n"))
	}
	return b.String()
}

func (a *app) skillsApprove(s *skill.Store, names []string) error {
	var b strings.Builder
	for _, name := range names {
		name, digest, _ := strings.Cut(name, "@")
		one, err := a.approveSkill(s, name, digest)
		if err != nil {
			_ = a.Print(b.String())
			return a.skillError(s, "", true, name, err)
		}
		fmt.Fprintf(&b, "shared %s, version %d\n", one.Name, one.Version)
	}
	return a.Print(b.String())
}

// approveSkill shares a skill. It writes the audit record first.
func (a *app) approveSkill(s *skill.Store, name, digest string) (skill.Skill, error) {
	waits, err := s.LoadPending(name)
	if err != nil {
		waits, err = s.LoadShared(name, 0)
	}
	if (err == nil || errors.Is(err, skill.ErrChanged)) && strings.HasPrefix(waits.Digest(), digest) {
		if err := a.RecordEvents(audit.Event{Kind: audit.SkillApproved, After: waits.Digest(), Note: name}); err != nil {
			return skill.Skill{}, err
		}
	}
	return s.Approve(name, digest)
}

func (a *app) eachSkill(names []string, done string, do func(string) error, list func() []string) error {
	for _, name := range names {
		known := list()
		if err := do(name); err != nil {
			return noSkill(name, known, err)
		}
		if err := a.RecordEvents(audit.Event{Kind: audit.SkillRemoved, Note: name + " " + done}); err != nil {
			return err
		}
		if err := a.Print(done + " " + name + "\n"); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) skillError(s *skill.Store, owner string, shared bool, name string, err error) error {
	known := s.Names(owner)
	if shared {
		known = append(s.Pending(), s.SharedNames()...)
	}
	return noSkill(name, known, err)
}

func noSkill(name string, known []string, err error) error {
	if !errors.Is(err, skill.ErrNotFound) {
		return &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("skill %.80q: %v", name, err), Err: err}
	}
	hint := "see sallyport skills list"
	if near := suggest.Of(name, known); near != "" {
		hint = "did you mean " + near + "?"
	}
	return &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("there is no skill %.80q", name), Hint: hint}
}
