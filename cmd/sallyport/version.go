package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sallyport/sandbox"
)

func versionCommand(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version [flags]",
		Short:   "print the versions of sallyport, Go and runsc",
		Long:    "Version prints what this sallyport was built from and with, and the gVisor that\nit would use.",
		Example: "  sallyport version --json | jq -r .version",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.version(cmd.Context(), asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// versions is what version --json prints.
type versions struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Runsc is empty if there is none, or none that runs.
	Runsc     string `json:"runsc,omitempty"`
	RunscPath string `json:"runsc_path,omitempty"`
}

func (a *app) version(ctx context.Context, asJSON bool) error {
	v := versions{Version: buildVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	v.Runsc, v.RunscPath = a.runscVersion(ctx)
	if asJSON {
		return a.printJSON(v)
	}
	found := "not found"
	if v.RunscPath != "" {
		found = fmt.Sprintf("%s at %s", v.Runsc, v.RunscPath)
	}
	return a.print(fmt.Sprintf("sallyport  %s\ngo         %s %s\nrunsc      %s", v.Version, v.Go, v.Platform, found))
}

// runscVersion looks where the settings say, if there are any that can be read.
func (a *app) runscVersion(ctx context.Context) (version, path string) {
	explicit := ""
	if cfg, err := a.load(); err == nil {
		explicit = cfg.Sandbox.Runsc
	}
	version, path, err := sandbox.Runtime(ctx, explicit)
	if err != nil {
		return "", ""
	}
	return version, path
}

// buildVersion is the version that the build has stamped, "dev" without one.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}
