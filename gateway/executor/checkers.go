package executor

import (
	"context"
	"fmt"
	"io"

	"sallyport/codegen/runtime"
	"sallyport/gateway/typecheck"
	"sallyport/sandbox"
)

// FindChecker returns the type checker of a language on this machine as a service without an ID, with the errors of [typecheck.Find].
func FindChecker(language typecheck.Language, path string) (sandbox.Service, error) {
	install, err := typecheck.Find(language, path)
	if err != nil {
		return sandbox.Service{}, err
	}
	service := sandbox.Service{
		Args: install.Args, Dir: typecheck.Dir, Files: install.Files, Mounts: map[string]string{typecheck.Folder: install.Folder},
		Memory: install.Memory, Processes: 64, OpenFiles: 256,
	}
	service.Files["sallyport.ts"] = runtime.TypeScript
	if install.Node {
		service.Interpreter = sandbox.Node
	}
	return service, nil
}

// CheckerName returns the name by which workers know the type checker of a language.
func CheckerName(language typecheck.Language) string { return "typecheck-" + string(language) }

// serviceHost starts services on another machine: a [remote.Client] or a [workers.Pool].
type serviceHost interface {
	Serve(ctx context.Context, name string) (io.ReadWriteCloser, error)
}

// serveElsewhere starts a service of another machine's by its name. ctx bounds the start only.
func (r *Sandboxes) serveElsewhere(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	host, release, err := r.borrow()
	if err != nil {
		return nil, err
	}
	defer release()
	elsewhere, ok := host.(serviceHost)
	if !ok {
		return nil, fmt.Errorf("start service: %T has none", host)
	}
	return elsewhere.Serve(ctx, name)
}

// remoteChecker returns a checker with servers that run where the programs do.
func (c *checks) remoteChecker(language typecheck.Language) *typecheck.Checker {
	start := func(ctx context.Context) (io.ReadWriteCloser, error) {
		stream, err := c.sandboxes.serveElsewhere(ctx, CheckerName(language))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", typecheck.ErrUnavailable, err)
		}
		return stream, nil
	}
	return typecheck.New(language, start, &typecheck.Options{Logger: c.log, Persistent: true})
}
