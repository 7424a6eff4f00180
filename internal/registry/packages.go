package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// The official registries of packages.
const (
	NPM  = "https://registry.npmjs.org"
	PyPI = "https://pypi.org"
)

// Index returns the registry of packages of a kind that the environment names, "" for the usual one.
func Index(getenv func(string) (string, bool), kind string) string {
	index, _ := getenv(map[string]string{"npm": "npm_config_registry", "pypi": "UV_DEFAULT_INDEX"}[kind])
	return strings.TrimRight(index, "/")
}

// PackageInfo describes one version of a package. Its texts are untrusted.
type PackageInfo struct {
	Name, Version, Description, Repository string
	// Publisher published the version: the user of npm, or the author that a Python package names.
	Publisher string
	// Deprecated is the reason why the version should not be used, "" if there is none.
	Deprecated string
}

var (
	npmName  = regexp.MustCompile(`^(@[A-Za-z0-9~-][A-Za-z0-9._~-]*/)?[A-Za-z0-9~-][A-Za-z0-9._~-]*$`)
	pypiName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
)

// IsPackage reports whether a text has the form of a package's name in a registry of a type, npm or pypi.
func IsPackage(kind, text string) bool {
	form := npmName
	if kind == "pypi" {
		form = pypiName
	}
	return len(text) <= 214 && form.MatchString(text) && !strings.HasPrefix(text, "-")
}

// ReadPackage returns a version of a package of npm or pypi; version "" is the latest one. base is the URL of the registry, "" for
// the official one.
func ReadPackage(ctx context.Context, client *http.Client, kind, base, name, version string) (PackageInfo, error) {
	if !IsPackage(kind, name) {
		return PackageInfo{}, fmt.Errorf("%.80q is not the name of a package of %s", name, kind)
	}
	if version != "" && !IsVersion(version) {
		return PackageInfo{}, fmt.Errorf("%.80q is not a version", version)
	}
	read := readNPM
	if kind == "pypi" {
		read = readPyPI
	}
	info, err := read(ctx, client, strings.TrimRight(base, "/"), name, version)
	switch {
	case errors.Is(err, ErrNotFound):
		return info, fmt.Errorf("the package %s: %w", strings.TrimSuffix(name+" "+version, " "), err)
	case err != nil:
		return info, err
	case !IsVersion(info.Version) || version != "" && info.Version != version:
		return info, fmt.Errorf("%w: it is about another version", ErrInvalid)
	case !sameName(kind, info.Name, name):
		return info, fmt.Errorf("%w: it is about another package", ErrInvalid)
	}
	info.Name = name
	return info, nil
}

var separators = regexp.MustCompile(`[-_.]+`)

// sameName compares names; PyPI does not distinguish cases and separators.
func sameName(kind, a, b string) bool {
	if kind == "pypi" {
		return strings.EqualFold(separators.ReplaceAllString(a, "-"), separators.ReplaceAllString(b, "-"))
	}
	return a == b
}

func readNPM(ctx context.Context, client *http.Client, base, name, version string) (PackageInfo, error) {
	if base == "" {
		base = NPM
	}
	if version == "" {
		version = "latest"
	}
	var of struct {
		Name        string `json:"name"`
		Version     string `json:"version"`
		Description string `json:"description"`
		Deprecated  any    `json:"deprecated"`
		Repository  any    `json:"repository"`
		User        struct {
			Name string `json:"name"`
		} `json:"_npmUser"`
	}
	// A registry of npm reads the slash of a scope only encoded.
	err := ReadJSON(ctx, client, base+"/"+strings.Replace(name, "/", "%2F", 1)+"/"+url.PathEscape(version), "application/json", &of)
	info := PackageInfo{Name: of.Name, Version: of.Version, Description: of.Description, Publisher: of.User.Name, Repository: textOf(of.Repository)}
	if why, ok := of.Deprecated.(string); ok {
		info.Deprecated = why
	}
	return info, err
}

// textOf returns the URL of a repository, which is a text or an object.
func textOf(repository any) string {
	if object, ok := repository.(map[string]any); ok {
		repository = object["url"]
	}
	text, _ := repository.(string)
	return strings.TrimSuffix(strings.TrimPrefix(text, "git+"), ".git")
}

func readPyPI(ctx context.Context, client *http.Client, base, name, version string) (PackageInfo, error) {
	if base == "" {
		base = PyPI
	}
	base = strings.TrimSuffix(base, "/simple")
	path := "/pypi/" + url.PathEscape(name)
	if version != "" {
		path += "/" + url.PathEscape(version)
	}
	var of struct {
		Info struct {
			Name         string            `json:"name"`
			Version      string            `json:"version"`
			Summary      string            `json:"summary"`
			Author       string            `json:"author"`
			AuthorEmail  string            `json:"author_email"`
			URLs         map[string]string `json:"project_urls"`
			Yanked       bool              `json:"yanked"`
			YankedReason string            `json:"yanked_reason"`
		} `json:"info"`
	}
	err := ReadJSON(ctx, client, base+path+"/json", "application/json", &of)
	i := of.Info
	info := PackageInfo{Name: i.Name, Version: i.Version, Description: i.Summary, Publisher: i.Author, Repository: i.URLs["Repository"]}
	if info.Publisher == "" {
		info.Publisher = i.AuthorEmail
	}
	if i.Yanked {
		info.Deprecated = "the version was withdrawn"
		if i.YankedReason != "" {
			info.Deprecated = i.YankedReason
		}
	}
	return info, err
}
