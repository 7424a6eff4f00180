package addition

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/internal/candidate"
	"sallyport/internal/presets"
	"sallyport/internal/registry"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
	"sallyport/internal/suggest"
	"sallyport/internal/tool"
	"sallyport/sandbox/image"
)

// Finder looks servers up.
type Finder struct {
	// Env has the variables that name the registries of packages.
	Env func(string) (string, bool)
	// Progress shows what is read, until stop is called; nil shows nothing.
	Progress func(what string) (stop func())
}

func (f Finder) progress(what string) (stop func()) {
	if f.Progress == nil {
		return func() {}
	}
	return f.Progress(what)
}

// Find returns the server that a word names: see `sallyport add`. Errors are *tool.Error.
func (f Finder) Find(ctx context.Context, file *settingsfile.File, server string, choice candidate.Choice) (candidate.Candidate, error) {
	kind, rest, _ := strings.Cut(server, ":")
	switch {
	case kind == "npm" || kind == "pypi":
		return f.findPackage(ctx, kind, rest)
	case kind == "oci" || kind == "docker" || kind == "image":
		return f.pin(ctx)(candidate.OfImage(rest))
	case kind == "grpc":
		return wrapInvalid(candidate.OfGRPC(rest))
	case kind == "egress":
		return findEgress(rest)
	case isDocument(server):
		document, err := DocumentPath(file.Path, server)
		if err != nil {
			return candidate.Candidate{}, err
		}
		return candidate.OfDocument(strings.ReplaceAll(document, "$$", "$"))
	case isGraphQL(server):
		return wrapInvalid(candidate.OfGraphQL(server))
	case strings.Contains(server, "://"):
		return wrapInvalid(candidate.OfURL(server))
	case strings.Contains(server, "/"):
		return f.findEntry(ctx, file, server, choice)
	}
	if p, ok := presets.Find(server); ok {
		return candidate.OfPreset(p, choice)
	}
	return candidate.Candidate{}, f.explainUnknown(ctx, file, server)
}

func wrapInvalid(c candidate.Candidate, err error) (candidate.Candidate, error) {
	if err != nil {
		return c, &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err, Hint: "give the URL of an MCP server, as in https://example.com/mcp"}
	}
	return c, nil
}

func findEgress(hosts string) (candidate.Candidate, error) {
	c, err := candidate.OfEgress(hosts)
	if err != nil {
		return c, &tool.Error{Kind: tool.Invalid, Message: err.Error(), Err: err, Hint: "give names of hosts, as in egress:api.example.com,*.cdn.example.com:8443"}
	}
	return c, nil
}

// isDocument reports whether a word is a document of OpenAPI: a file that exists, or a URL of one, by its ending.
func isDocument(server string) bool {
	at := server
	if parsed, err := url.Parse(server); err == nil && strings.Contains(server, "://") {
		at = parsed.Path
	}
	if !slices.Contains([]string{".json", ".yaml", ".yml"}, strings.ToLower(filepath.Ext(at))) {
		return false
	}
	if strings.Contains(server, "://") || strings.HasPrefix(server, ".") || filepath.IsAbs(server) {
		return true
	}
	_, err := os.Stat(server)
	return err == nil
}

// isGraphQL reports whether a word is the URL of a GraphQL API, by the last part of its path.
func isGraphQL(server string) bool {
	parsed, err := url.Parse(server)
	return err == nil && strings.Contains(server, "://") && strings.EqualFold(path.Base(parsed.Path), "graphql")
}

// cutVersion splits NAME@VERSION; the @ of a scope of npm is part of the name.
func cutVersion(text string) (name, version string) {
	if at := strings.LastIndexByte(text, '@'); at > 0 {
		return text[:at], text[at+1:]
	}
	if name, version, ok := strings.Cut(text, "=="); ok {
		return name, version
	}
	return text, ""
}

func (f Finder) findPackage(ctx context.Context, kind, text string) (candidate.Candidate, error) {
	name, version := cutVersion(text)
	if version == "latest" {
		version = ""
	}
	stop := f.progress("reading " + kind)
	info, err := registry.ReadPackage(ctx, registry.NewHTTP(), kind, registry.Index(f.Env, kind), name, version)
	stop()
	if err != nil {
		return candidate.Candidate{}, lookupError(err, "correct the name or the version; "+kind+":PACKAGE@VERSION names a version")
	}
	return candidate.OfPackage(kind, info)
}

// lookupError returns the error of a lookup, as a wrong command line if there is no such thing.
func lookupError(err error, hint string) error {
	kind := tool.Failed
	if errors.Is(err, registry.ErrNotFound) {
		kind = tool.NotFound
	}
	return &tool.Error{Kind: kind, Message: err.Error(), Err: err, Hint: hint}
}

// Registry returns the client of the registry of the settings.
func Registry(file *settingsfile.File) *registry.Client {
	if len(file.Data) > 0 {
		if cfg, err := file.Config(); err == nil {
			return registry.New(cfg.Registry)
		}
	}
	return registry.New(registry.URL)
}

func (f Finder) findEntry(ctx context.Context, file *settingsfile.File, text string, choice candidate.Choice) (candidate.Candidate, error) {
	name, version := cutVersion(text)
	if version == "latest" {
		version = ""
	}
	if !registry.IsName(name) {
		return candidate.Candidate{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%.80q is not the name of a server", name),
			Hint: "the registry has names such as io.github.owner/server; npm:@scope/name is a package, ./FILE.yaml a document"}
	}
	stop := f.progress("reading the MCP registry")
	entry, err := Registry(file).Get(ctx, name, version)
	stop()
	if err != nil {
		return candidate.Candidate{}, lookupError(err, "sallyport search --registry WORDS finds servers, and their versions")
	}
	return f.pin(ctx)(candidate.Of(entry, choice))
}

// pin returns a function that gives the image of a candidate, if it has one, the digest of its tag.
func (f Finder) pin(ctx context.Context) func(candidate.Candidate, error) (candidate.Candidate, error) {
	return func(c candidate.Candidate, err error) (candidate.Candidate, error) {
		if err != nil || c.Image() == "" {
			return c, err
		}
		stop := f.progress("reading the registry of the image")
		pinned, err := image.Pin(ctx, c.Image(), image.Options{})
		stop()
		if err != nil {
			return c, &tool.Error{Kind: tool.Failed, Message: err.Error(), Err: err, Hint: "correct the name or the tag; a private registry needs a login in ~/.docker/config.json"}
		}
		c.Pin(pinned)
		return c, nil
	}
}

// maxSimilar bounds the servers that are named in an error.
const maxSimilar = 8

// explainUnknown returns the error for a word that is no preset. Anybody can publish a server of any short name, so none is chosen by it.
func (f Finder) explainUnknown(ctx context.Context, file *settingsfile.File, word string) error {
	err := &tool.Error{Kind: tool.NotFound, Message: fmt.Sprintf("%.60q is no well-known server", word), Hint: "see sallyport add --help"}
	if near := suggest.Of(word, presets.Names()); near != "" {
		err.Hint = "did you mean " + near + "?"
	}
	stop := f.progress("searching the MCP registry")
	found, _, lookup := Registry(file).Search(ctx, word, maxSimilar)
	stop()
	if lookup != nil || len(found) == 0 {
		return err
	}
	err.Message += "; the MCP registry has, by others,"
	for _, e := range found {
		err.Message += "\n  " + e.Server.Name + "  " + sanitize.Line(e.Server.Description, 60)
	}
	err.Hint = "add one by its full name, after a look at who publishes it: sallyport add " + found[0].Server.Name
	return err
}

// DocumentPath returns the path of a document, from the working directory, as the settings file has it: from its own directory if it
// is below that.
func DocumentPath(settings, document string) (string, error) {
	if document == "" || strings.Contains(document, "://") {
		return document, nil
	}
	path, err := filepath.Abs(document)
	if err != nil {
		return "", err
	}
	if dir, err := filepath.Abs(filepath.Dir(settings)); err == nil {
		if near, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(near) {
			path = "." + string(filepath.Separator) + near
		}
	}
	return strings.ReplaceAll(path, "$", "$$"), nil
}
