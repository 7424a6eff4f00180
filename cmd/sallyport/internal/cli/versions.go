package cli

import (
	"context"
	"runtime"

	"sallyport/sandbox"
)

// Versions is what version --json prints.
type Versions struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Runsc is empty if runsc is not found or does not run.
	Runsc     string `json:"runsc,omitempty"`
	RunscPath string `json:"runsc_path,omitempty"`
}

// Versions returns the versions of this sallyport and its Go, and the runsc that it would use: the
// one of the settings, if they can be read.
func (a *App) Versions(ctx context.Context) Versions {
	v := Versions{Version: BuildVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	v.Runsc, v.RunscPath = a.runscVersion(ctx)
	return v
}

func (a *App) runscVersion(ctx context.Context) (version, path string) {
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
