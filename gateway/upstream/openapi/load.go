package openapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/gateway/upstream/webapi"
	"sallyport/internal/sanitize"
)

// document is one file of the document: the one of the settings, or one that it refers to.
type document struct {
	name string // its URL, or its path below the folder of the main one
	root any
}

// loader reads the files of one document, each once: from the folder of the main one, or from its origin.
type loader struct {
	ctx    context.Context //nolint:containedctx // of one Load
	client *http.Client    // nil for files
	origin string
	dir    *os.Root // nil for URLs
	meter  *meter
	files  map[string]*document
	failed map[string]error
	bytes  int
	notes  []error // defects that were repaired, a few
}

// note keeps a defect that is repaired.
func (l *loader) note(err error) {
	if len(l.notes) < 20 && !slices.ContainsFunc(l.notes, func(e error) bool { return e.Error() == err.Error() }) {
		l.notes = append(l.notes, err)
	}
}

// isURL reports whether the setting names a URL rather than a file.
func isURL(text string) bool {
	return strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")
}

// openMain opens the file or URL of the settings.
func openMain(ctx context.Context, opts *Options) (*loader, *document, error) {
	l := &loader{ctx: ctx, meter: newMeter(ctx), files: map[string]*document{}, failed: map[string]error{}}
	name := opts.Document
	if isURL(name) {
		u, err := url.Parse(name)
		if err != nil || u.Host == "" {
			return nil, nil, errors.New("the URL of the OpenAPI document is invalid")
		}
		u.Fragment = ""
		l.origin, name = webapi.Origin(u), u.String()
		l.client = &http.Client{Transport: opts.documents(), CheckRedirect: sameOrigin(l.origin)}
	} else {
		dir, err := os.OpenRoot(filepath.Dir(name))
		if err != nil {
			return nil, nil, fmt.Errorf("open the folder of the OpenAPI document: %w", withoutPath(err))
		}
		l.dir, name = dir, filepath.Base(name)
	}
	doc, err := l.open(name)
	if err != nil {
		l.close()
		return nil, nil, err
	}
	return l, doc, nil
}

func (l *loader) close() {
	if l.dir != nil {
		_ = l.dir.Close()
	}
	if l.client != nil {
		l.client.CloseIdleConnections()
	}
}

// open returns a file, which it reads the first time.
func (l *loader) open(name string) (*document, error) {
	if d := l.files[name]; d != nil {
		return d, nil
	}
	if err := l.failed[name]; err != nil {
		return nil, err
	}
	d, err := l.load(name)
	if err != nil {
		l.failed[name] = err
		return nil, err
	}
	l.files[name] = d
	return d, nil
}

func (l *loader) load(name string) (*document, error) {
	if len(l.files)+len(l.failed) >= maxFiles {
		return nil, beyond("refers to more than %d files", maxFiles)
	}
	data, err := l.read(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", show(name), err)
	}
	if l.bytes += len(data); l.bytes > maxTotal {
		return nil, beyond("has files of more than %d MiB together", maxTotal>>20)
	}
	root, err := parse(name, data, l.meter)
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", show(name), err)
	}
	return &document{name, root}, nil
}

// show returns a name for an error; the query of a URL may be a secret.
func show(name string) string {
	name, _, _ = strings.Cut(name, "?")
	return sanitize.Line(name, 200)
}

func parse(name string, data []byte, m *meter) (any, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if trimmed := bytes.TrimSpace(data); len(trimmed) > 0 && trimmed[0] == '{' {
		v, err := parseJSON(data, m)
		if err == nil || isLimit(err) || strings.HasSuffix(strings.ToLower(name), ".json") {
			return v, err
		}
	}
	return parseYAML(data, m)
}

func (l *loader) read(name string) ([]byte, error) {
	if l.dir == nil {
		return l.fetch(name)
	}
	f, err := l.dir.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, withoutPath(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return readBounded(f)
}

// withoutPath returns the reason of an error of a file, whose name the caller reports.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

func readBounded(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = beyond("has a file of more than %d MiB", maxFile>>20)
	}
	return data, err
}

func (l *loader) fetch(name string) ([]byte, error) {
	req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, name, nil)
	if err != nil {
		return nil, errors.New("its URL is invalid")
	}
	req.Header.Set("Accept", "application/json, application/yaml, */*;q=0.5")
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, webapi.WithoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers HTTP %d", resp.StatusCode)
	}
	return readBounded(resp.Body)
}

// sameOrigin returns a policy for redirects, which refuses those to another origin.
func sameOrigin(origin string) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		if to := webapi.Origin(req.URL); to != origin {
			return fmt.Errorf("the server redirects to %s, which is another host", show(to))
		}
		if len(via) > 5 {
			return errors.New("too many redirects")
		}
		return nil
	}
}

// related returns the name of the file that a reference in d names, and an error if it is neither in the folder nor at the origin of
// the main document.
func (l *loader) related(d *document, file string) (string, error) {
	if file == "" {
		return d.name, nil
	}
	if l.dir == nil {
		base, err := url.Parse(d.name)
		if err != nil {
			return "", err
		}
		u, err := base.Parse(file)
		if err != nil {
			return "", errors.New("the reference is not a URL")
		}
		if webapi.Origin(u) != l.origin {
			return "", fmt.Errorf("the reference to %s leaves the host of the document", show(file))
		}
		u.Fragment = ""
		return u.String(), nil
	}
	decoded, err := url.PathUnescape(file)
	if err != nil || strings.Contains(file, "://") || path.IsAbs(decoded) || filepath.IsAbs(decoded) {
		return "", fmt.Errorf("the reference to %s leaves the folder of the document", show(file))
	}
	name := path.Join(path.Dir(d.name), decoded)
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("the reference to %s leaves the folder of the document", show(file))
	}
	return name, nil
}
