package vmcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/cmd/sallyport/internal/cli"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
	"sallyport/sandbox"
	"sallyport/sandbox/remote"
)

// up brings the machine to the state in which programs run in it.
func (v vm) up(ctx context.Context, o options) error {
	if err := v.boot(ctx, o.rootfs); err != nil {
		return err
	}
	if err := v.provision(ctx); err != nil {
		return err
	}
	if err := v.install(ctx, o.archive); err != nil {
		return err
	}
	if err := v.verify(ctx); err != nil {
		return err
	}
	if o.keepSettings {
		return v.Print("programs can run in " + v.address.String() + ": sallyport serve --sandbox " + v.address.String())
	}
	return v.use()
}

// boot makes the machine, or starts it.
func (v vm) boot(ctx context.Context, rootfs string) error {
	state, err := v.state(ctx)
	switch {
	case err != nil || state == running:
		return err
	case state == absent:
		v.step("making the virtual machine %s: a download, and some minutes", v.address.Host)
		return v.make(ctx, rootfs)
	case v.start == nil:
		return nil
	}
	v.step("starting the virtual machine %s", v.address.Host)
	return v.run(ctx, nil, v.start...)
}

func (v vm) make(ctx context.Context, rootfs string) error {
	dir, err := os.MkdirTemp("", "sallyport-vm-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	config := filepath.Join(dir, "sallyport.yaml")
	if err := os.WriteFile(config, limaConfig, 0o600); err != nil {
		return err
	}
	location, err := v.location()
	if err != nil {
		return err
	}
	return v.run(ctx, nil, v.create(config, location, rootfs)...)
}

// provision installs the interpreters. WSL reads its configuration, which this may change, at the next start.
func (v vm) provision(ctx context.Context) error {
	v.step("installing Python and Node.js in it, if they are missing")
	if err := v.run(ctx, strings.NewReader(provisionScript), slices.Concat(v.asRoot, []string{"sh", "-s", string(v.kind)})...); err != nil {
		return err
	}
	if v.start != nil {
		return nil
	}
	return v.run(ctx, nil, v.stop...)
}

// install puts the programs for Linux into the machine, if it has others.
func (v vm) install(ctx context.Context, given string) error {
	version := cli.BuildVersion()
	if there, err := v.output(ctx, slices.Concat(v.asUser, []string{remote.Installed, "--version"})...); err == nil && there == "sallyport "+version && given == "" {
		return nil
	}
	arch, err := v.architecture(ctx)
	if err != nil {
		return err
	}
	archive, err := findArchive(given, version, arch)
	if err != nil {
		return err
	}
	v.step("installing %s in it", filepath.Base(archive))
	return v.send(ctx, archive)
}

// architecture returns the processor of the machine, in Go's words.
func (v vm) architecture(ctx context.Context) (string, error) {
	name, err := v.output(ctx, slices.Concat(v.asUser, []string{"uname", "-m"})...)
	if err != nil {
		return "", err
	}
	arch, ok := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[name]
	if !ok {
		return "", &tool.Error{Kind: tool.Failed, Message: fmt.Sprintf("the virtual machine has a processor that no release is for: %.40q", name)}
	}
	return arch, nil
}

// send unpacks the programs of an archive to /usr/local in the machine. A running worker keeps its files.
func (v vm) send(ctx context.Context, archive string) error {
	out, in := io.Pipe()
	copied := make(chan error, 1)
	go func() {
		err := copyPrograms(in, archive)
		in.CloseWithError(err)
		copied <- err
	}()
	err := v.run(ctx, out, slices.Concat(v.asRoot, []string{"tar", "--extract", "--file=-", "--directory=/usr/local", "--no-same-owner", "--unlink-first"})...)
	_ = out.Close()
	if broken := <-copied; broken != nil && !errors.Is(broken, io.ErrClosedPipe) {
		return broken
	}
	return err
}

// verify has the worker run a program in each language.
func (v vm) verify(ctx context.Context) error {
	v.step("checking its sandboxes")
	_, found, _, err := v.Worker(ctx, v.address.String())
	if err != nil {
		return err
	}
	for _, check := range found {
		if !check.OK {
			return &tool.Error{Kind: tool.Failed, Message: check.Name + ": " + sanitize.Line(check.Detail, 300), Hint: check.Fix}
		}
	}
	return nil
}

// use sets the worker in the settings, unless they name another machine.
func (v vm) use() error {
	f, err := v.EditSettings()
	if err != nil {
		return err
	}
	address := v.address.String()
	set, err := remoteOf(f)
	switch {
	case err != nil:
		return err
	case set == "":
		err = errors.Join(f.SetRemote(address), f.Save())
	case set != address:
		return v.Print(fmt.Sprintf("%s has sandbox.remote: %s; to use the virtual machine, write %s there", f.Path, set, address))
	}
	if err != nil {
		return err
	}
	return v.Print(fmt.Sprintf("programs run in %s, as %s says; try it: sallyport doctor", address, f.Path))
}

// down stops the machine, or removes it.
func (v vm) down(ctx context.Context, remove bool) error {
	state, err := v.existing(ctx)
	if err != nil {
		return err
	}
	if state == running {
		if err := v.run(ctx, nil, v.stop...); err != nil {
			return err
		}
	}
	if !remove {
		return v.Print("stopped " + v.address.Host)
	}
	// Newer versions of wsl.exe ask before they remove.
	if err := v.failure(ctx, v.command(ctx, v.remove), v.attach(ctx, v.remove...)); err != nil {
		return err
	}
	return errors.Join(v.forget(), v.Print("removed "+v.address.Host))
}

// forget removes the machine from the settings.
func (v vm) forget() error {
	f, err := v.EditSettings()
	if err != nil {
		return err
	}
	if set, err := remoteOf(f); err != nil || set != v.address.String() {
		return err
	}
	return errors.Join(f.SetRemote(""), f.Save())
}

// statusJSON is what status --json prints.
type statusJSON struct {
	Name   string    `json:"name"`
	Engine string    `json:"engine"`
	State  lifecycle `json:"state"`
	// Address is the value of sandbox.remote that runs programs in it.
	Address string `json:"address"`
	// Version and Checks are of the worker, Error is why there is none.
	Version string          `json:"version,omitempty"`
	Checks  []sandbox.Check `json:"checks"`
	Error   string          `json:"error,omitempty"`
}

// ok reports whether programs can run.
func (s statusJSON) ok() bool {
	return s.Version != "" && s.Error == "" && !slices.ContainsFunc(s.Checks, func(c sandbox.Check) bool { return !c.OK })
}

// String returns the same for people.
func (s statusJSON) String() string {
	text := fmt.Sprintf("%s (%s): %s", s.Name, s.Engine, s.State)
	if s.Error != "" {
		return text + "\nworker: " + s.Error
	}
	if s.Version != "" {
		text += "\nworker: sallyport " + s.Version + " at " + s.Address
	}
	for _, check := range s.Checks {
		if !check.OK {
			text += "\nFAIL  " + check.Name + ": " + check.Detail
		}
	}
	return text
}

func (v vm) status(ctx context.Context, asJSON bool) error {
	state, err := v.state(ctx)
	if err != nil {
		return err
	}
	s := statusJSON{Name: v.address.Host, Engine: string(v.kind), State: state, Address: v.address.String()}
	if state == running {
		s.Version, s.Checks, _, err = v.Worker(ctx, s.Address)
		if err != nil {
			s.Error = sanitize.Line(err.Error(), 400)
		}
	}
	show := func() error { return v.Print(s.String()) }
	if asJSON {
		show = func() error { return v.PrintJSON(s) }
	}
	if err := show(); err != nil || s.ok() {
		return err
	}
	return cli.Status(cli.ExitFailed)
}

// enter runs a shell or a command in the machine, and ends as it does.
func (v vm) enter(ctx context.Context, words []string) error {
	if _, err := v.existing(ctx); err != nil {
		return err
	}
	line := v.shell
	if len(words) > 0 {
		line = slices.Concat(v.asUser, words)
	}
	err := v.attach(ctx, line...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return cli.Status(exit.ExitCode())
	}
	return err
}

// remoteOf returns sandbox.remote of a settings file, "" for none.
func remoteOf(f *settingsfile.File) (string, error) {
	if len(f.Data) == 0 {
		return "", nil
	}
	c, err := f.Config()
	if err != nil {
		return "", err
	}
	return c.Sandbox.Remote, nil
}
