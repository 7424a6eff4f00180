package isolation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"sallyport/internal/config"
	"sallyport/internal/mountrule"
	"sallyport/internal/sanitize"
	"sallyport/sandbox"
	"sallyport/sandbox/image"
)

// imagePath is the PATH of an image that sets none, as for Docker.
const imagePath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// prepareImage sets the program of an image, after it has been pulled.
func (l *Launcher) prepareImage(ctx context.Context, up config.Upstream, s *sandbox.Service) error {
	reference := up.Isolate.Image
	root, err := l.images.get(ctx, l, reference, "the image "+reference, func() (image.Root, error) { return l.opts.Images.Image(l.quit, reference) })
	if err != nil {
		return err
	}
	p := root.Program
	if p.Problem != "" {
		return invalid("the image "+reference+" cannot run: "+sanitize.Line(p.Problem, 300), "use another image")
	}
	if s.Args = words(up, p); len(s.Args) == 0 {
		return invalid("the image "+reference+" names no program", `name one inside of it by "command"`)
	}
	s.Environment = sandbox.Environment{Root: root.Dir, Digest: root.Digest, Node: root.Node}
	t := s.ThirdParty
	t.User, t.Cwd = &sandbox.User{UID: p.UID, GID: p.GID}, cmp.Or(up.Dir, p.Dir)
	t.Scratch = slices.DeleteFunc(slices.Clone(p.Volumes), func(at string) bool { return covered(s, at) })
	addVariables(t.Env, p.Env)
	return nil
}

// words returns the command line as docker run does: args replace the image's, and a command replaces its entry point and arguments.
func words(up config.Upstream, p image.Program) []string {
	switch {
	case up.Command != "":
		return append([]string{up.Command}, up.Args...)
	case len(up.Args) > 0:
		return slices.Concat(p.Entrypoint, up.Args)
	}
	return slices.Concat(p.Entrypoint, p.Cmd)
}

// addVariables adds the variables of an image, unless they are set. Its home is that of the sandbox, which can be written to.
func addVariables(env map[string]string, all []string) {
	set := map[string]string{"PATH": imagePath}
	for _, line := range all {
		if name, value, ok := strings.Cut(line, "="); ok && name != "" && name != "HOME" {
			set[name] = value
		}
	}
	for name, value := range set {
		if _, given := env[name]; !given {
			env[name] = value
		}
	}
}

// covered reports whether a folder of an image is at, in or around a mount of the sandbox, or at a place that cannot be mounted.
func covered(s *sandbox.Service, at string) bool {
	if mountrule.Problem(at) != "" {
		return true
	}
	taken := []string{ownDir, sandbox.HomeDir}
	for _, mounts := range []map[string]string{s.Mounts, s.ThirdParty.Writable} {
		for path := range mounts {
			taken = append(taken, path)
		}
	}
	return slices.ContainsFunc(taken, func(path string) bool { return within(at, path) || within(path, at) })
}

const (
	// tagInterval is the time between two questions for the digest of a tag.
	tagInterval = time.Hour
	// tagTimeout bounds the answer.
	tagTimeout = 30 * time.Second
)

// tagChecks are the times of the last questions, by tag.
type tagChecks struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// due reports whether a tag should be asked for, and notes that it is.
func (c *tagChecks) due(reference string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(reference, "@") || time.Since(c.last[reference]) < tagInterval {
		return false
	}
	if c.last == nil {
		c.last = map[string]time.Time{}
	}
	c.last[reference] = time.Now()
	return true
}

// watchTag says in the log of an upstream when the tag of its image names another image than the one that runs.
func (l *Launcher) watchTag(up config.Upstream, say func(line string)) {
	reference := up.Isolate.Image
	if reference == "" || !l.tags.due(reference) {
		return
	}
	l.work.Go(func() {
		ctx, cancel := context.WithTimeout(l.quit, tagTimeout)
		defer cancel()
		moved, err := l.opts.Images.Moved(ctx, reference)
		switch {
		case l.quit.Err() != nil:
		case err != nil:
			l.opts.Logger.Info("it is not known whether the tag of an image has moved", "upstream", up.ID, "error", err)
		case moved != "":
			l.opts.Logger.Warn("the tag of an image has moved; its first image runs", "upstream", up.ID, "image", reference, "now", moved)
			say(fmt.Sprintf("sallyport: the tag of its image has moved, and the image of its first use runs; to accept the new one, set isolate: image: %s", moved))
		}
	})
}
