package settingsfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Find returns the path of the file to load: explicit if it is not empty, else
// $SALLYPORT_CONFIG, else ./upstreams.yaml, else
// $XDG_CONFIG_HOME/sallyport/upstreams.yaml (~/.config without that variable).
// If there is none, the error wraps fs.ErrNotExist and lists the paths it tried. If
// explicit or $SALLYPORT_CONFIG names a missing file, it tries no other path.
func Find(explicit string, getenv func(string) (string, bool)) (string, error) {
	env := func(name string) string {
		if getenv == nil {
			return ""
		}
		value, _ := getenv(name)
		return value
	}
	if explicit != "" {
		return findIn("--config", explicit)
	}
	if named := env("SALLYPORT_CONFIG"); named != "" {
		return findIn("$SALLYPORT_CONFIG", named)
	}
	return findIn("", usualPlaces(env("XDG_CONFIG_HOME"), env("HOME"))...)
}

func usualPlaces(xdg, home string) []string {
	places := []string{"upstreams.yaml"}
	switch {
	case filepath.IsAbs(xdg): // the specification says to ignore a relative one
		places = append(places, filepath.Join(xdg, "sallyport", "upstreams.yaml"))
	case home != "":
		places = append(places, filepath.Join(home, ".config", "sallyport", "upstreams.yaml"))
	}
	return places
}

// findIn returns the first path that exists; origin is what named it, "" for the usual paths.
func findIn(origin string, paths ...string) (string, error) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return path, nil // config.Load says what else may be wrong with it
		}
	}
	if origin != "" {
		return "", missingError(fmt.Sprintf("no settings: %s, named by %s, does not exist; correct the path, or run sallyport init --config %[1]s", paths[0], origin))
	}
	return "", missingError("no settings yet: run sallyport init (looked for " + strings.Join(paths, " and ") + "; --config names another file)")
}

// missingError says in one line that there are no settings, and what to do. It is [fs.ErrNotExist].
type missingError string

func (e missingError) Error() string { return string(e) }

// Is reports whether target is [fs.ErrNotExist].
func (e missingError) Is(target error) bool { return target == fs.ErrNotExist }
