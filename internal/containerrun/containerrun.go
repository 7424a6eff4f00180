// Package containerrun makes settings of a sandbox from the options of docker run. Its main function is [Convert].
package containerrun

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/imageref"
	"sallyport/internal/sanitize"
	"sallyport/internal/settingsfile"
)

// Convert returns an entry that runs the image in a sandbox, in place of docker run or podman run; ok is false for
// another command. The error says which of its options a sandbox does not have.
func Convert(e settingsfile.Entry) (made settingsfile.Entry, ok bool, err error) {
	program := filepath.Base(e.Command)
	args := e.Args
	if len(args) > 0 && args[0] == "container" {
		args = args[1:]
	}
	if program != "docker" && program != "podman" || len(args) == 0 || args[0] != "run" {
		return e, false, nil
	}
	c := converter{given: e.Env, made: e}
	c.made.Command, c.made.Args, c.made.Env, c.made.Dir, c.made.Isolate = "", nil, nil, "", &settingsfile.EntryIsolation{}
	if err := c.read(args[1:]); err != nil {
		return e, true, err
	}
	return c.made, true, nil
}

// converter makes an entry of a command line.
type converter struct {
	// given are the variables of the command, of which options pass some on.
	given settingsfile.Values
	made  settingsfile.Entry
}

func (c *converter) read(args []string) error {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		rest, err := c.option(args)
		if err != nil {
			return err
		}
		args = rest
	}
	if len(args) == 0 || !imageref.Valid(args[0]) {
		return errors.New("its image is not known")
	}
	for name := range c.given {
		if _, passed := c.made.Env[name]; !passed {
			return fmt.Errorf("its variable %s is one of the command, and not of the container", sanitize.Line(name, 60))
		}
	}
	c.made.Isolate.Image, c.made.Args = args[0], slices.Clone(args[1:])
	return nil
}

// option takes an option with its value, and returns what follows.
func (c *converter) option(args []string) (rest []string, err error) {
	name, value, inline := strings.Cut(args[0], "=")
	rest = args[1:]
	takes, idle := Idle(name)
	switch {
	case idle && !takes && (!inline || value == "true"):
		return rest, nil
	case !inline && len(rest) == 0:
		return nil, unknown(name)
	case !inline:
		value, rest = rest[0], rest[1:]
	}
	if idle && takes {
		return rest, nil
	}
	return rest, c.set(name, value)
}

// set makes a setting of an option with a value.
func (c *converter) set(name, value string) error {
	switch name {
	case "-e", "--env":
		return c.pass(value)
	case "-v", "--volume", "--mount":
		return c.mount(value, name == "--mount")
	case "-m", "--memory":
		return c.memory(value)
	case "-w", "--workdir":
		return setPath(&c.made.Dir, name, value)
	case "--entrypoint":
		if !Program.MatchString(value) {
			return unknown(name)
		}
		c.made.Command = value
		return nil
	case "--network", "--net":
		if value == "none" {
			return nil
		}
	}
	if why := Refused(name); why != "" {
		return fmt.Errorf("it has the option %s of docker run: %s", sanitize.Line(name, 40), why)
	}
	return unknown(name)
}

func unknown(name string) error {
	return fmt.Errorf("it has the option %s of docker run, which is not supported", sanitize.Line(name, 40))
}

// pass sets a variable of the container: NAME=VALUE, or NAME with the value of the command's.
func (c *converter) pass(text string) error {
	name, value, inline := strings.Cut(text, "=")
	if !inline {
		given, ok := c.given[name]
		if !ok {
			return fmt.Errorf("it passes the variable %s on, which its settings do not have", sanitize.Line(name, 60))
		}
		value = given
	}
	if c.made.Env == nil {
		c.made.Env = settingsfile.Values{}
	}
	c.made.Env[name] = value
	return nil
}

func (c *converter) mount(text string, long bool) error {
	plain, ok := settingsfile.Plain(text)
	if !ok {
		return errors.New("it mounts a folder that a variable names")
	}
	mount, err := Mount(plain, long)
	if err == nil {
		c.made.Isolate.Mounts = append(c.made.Isolate.Mounts, mount)
	}
	return err
}

// memoryForm matches what a sandbox may have: from 100 MiB to 64 GiB.
var memoryForm = regexp.MustCompile(`^([1-9][0-9]{2,3}m|[1-9]g|[1-5][0-9]g|6[0-4]g)$`)

func (c *converter) memory(text string) error {
	if !memoryForm.MatchString(text) {
		return unknown("--memory " + text)
	}
	c.made.Isolate.Limits = map[string]string{"memory": text[:len(text)-1] + strings.ToUpper(text[len(text)-1:]) + "iB"}
	return nil
}

func setPath(to *string, name, value string) error {
	if !filepath.IsAbs(value) {
		return unknown(name)
	}
	*to = value
	return nil
}
