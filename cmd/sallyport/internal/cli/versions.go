package cli

import (
	"context"

	"sallyport/internal/build"
	"sallyport/sandbox"
)

// Versions is what version --json prints.
type Versions struct {
	build.Info

	// Runsc is empty if runsc is not found or does not run.
	Runsc     string `json:"runsc,omitempty"`
	RunscPath string `json:"runsc_path,omitempty"`
}

// BuildVersion returns the version of this program, "dev" if the build has none.
func BuildVersion() string { return build.Read().Version }

// Versions returns what this sallyport was built from, and the runsc that it would use: the one of the settings, if
// they can be read.
func (a *App) Versions(ctx context.Context) Versions {
	v := Versions{Info: build.Read()}
	v.Runsc, v.RunscPath = runscVersion(ctx, a)
	return v
}

func runscVersion(ctx context.Context, a *App) (version, path string) {
	explicit := ""
	if cfg, err := a.Load(); err == nil {
		explicit = cfg.Sandbox.Runsc
	}
	version, path, err := sandbox.Runtime(ctx, explicit)
	if err != nil {
		return "", ""
	}
	return version, path
}
