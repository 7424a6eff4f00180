package config

import "errors"

// Load reads the file at path, see [Parse]. Variables come from getenv, as in
// os.LookupEnv; nil means that none is set.
func Load(path string, getenv func(string) (string, bool)) (*Config, error) {
	return nil, errors.New("load config: being built")
}

// Parse reads data as Load does; path is for messages and for Config.Dir.
// Its errors are one *Error, or several, joined.
func Parse(path string, data []byte, getenv func(string) (string, bool)) (*Config, error) {
	return nil, errors.New("parse config: being built")
}

// Find returns the path of the file to load: explicit if it is not empty, else
// $SALLYPORT_CONFIG, else ./upstreams.yaml, else
// $XDG_CONFIG_HOME/sallyport/upstreams.yaml (~/.config without that variable).
// If there is none, the error wraps fs.ErrNotExist and lists where it looked.
func Find(explicit string, getenv func(string) (string, bool)) (string, error) {
	return "", errors.New("find config: being built")
}
