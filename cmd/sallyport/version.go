package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/build"
)

func versionCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version [flags]",
		Short:   "print the versions of sallyport, Go and runsc",
		Long:    "Version prints what this sallyport was built from and with, the gVisor that it\nwould use, and the version of gVisor that it was tested with.",
		Example: "  sallyport version --json | jq -r .version",
		Args:    cli.NoArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.version(cmd.Context(), asJSON) },
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

func (a *app) version(ctx context.Context, asJSON bool) error {
	v := a.Versions(ctx)
	if asJSON {
		return a.PrintJSON(v)
	}
	found := "not found"
	if v.RunscPath != "" {
		found = fmt.Sprintf("%s at %s", v.Runsc, v.RunscPath)
	}
	return a.Print(fmt.Sprintf("sallyport  %s\ngo         %s %s\nrunsc      %s\npinned     %s", source(v.Info), v.Go, v.Platform, found, v.RunscPin))
}

// source returns the version with the commit and its date, if the build has them.
func source(b build.Info) string {
	if b.Commit == "" {
		return b.Version
	}
	return strings.TrimSuffix(fmt.Sprintf("%s (commit %.12s, %s", b.Version, b.Commit, b.Date), ", ") + ")"
}
