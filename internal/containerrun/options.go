package containerrun

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/mountrule"
	"sallyport/internal/settingsfile"
)

// idleOptions are options that a sandbox has anyway, or that mean nothing for it; the value of the map says whether they take a value.
var idleOptions = map[string]bool{
	"-i": false, "--interactive": false, "--rm": false, "--init": false, "-t": false, "--tty": false, "-it": false, "-ti": false, "--read-only": false, "-q": false, "--quiet": false,
	"--cap-drop": true, "--pull": true, "--name": true, "--tmpfs": true, "--platform": true,
}

// refusedOptions are options that would take a server out of its sandbox, and why.
var refusedOptions = map[string]string{
	"--network": "a server has the network of isolate.hosts only", "--net": "a server has the network of isolate.hosts only", "--privileged": "a server has no privileges of this machine",
	"--cap-add": "a server has no capabilities", "--device": "a server has no devices of this machine", "-p": "a server over stdio has no ports", "--publish": "a server over stdio has no ports",
	"--pid": "a server sees its own processes only", "--ipc": "a server sees its own processes only", "--security-opt": "a server is in a sandbox",
}

// Idle reports whether an option is one that a sandbox has anyway, or that means nothing for it, and whether it takes a value.
func Idle(name string) (takes, ok bool) {
	takes, ok = idleOptions[name]
	return takes, ok
}

// Refused says why a sandbox cannot have an option, "" for another option.
func Refused(name string) string { return refusedOptions[name] }

// Program is the form of the value of --entrypoint.
var Program = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9/._-]{0,200}$`)

// Mount reads the value of --mount (long) or of --volume.
func Mount(text string, long bool) (mount settingsfile.EntryMount, err error) {
	source, target, mode := "", "", config.MountWritable
	if long {
		source, target, mode, err = longMount(text)
	} else {
		fields := strings.Split(text, ":")
		if len(fields) < 2 || len(fields) > 3 {
			return mount, fmt.Errorf("%.100q is not a mount", text)
		}
		if source, target = fields[0], fields[1]; len(fields) == 3 && slices.Contains(strings.Split(fields[2], ","), "ro") {
			mode = config.MountReadOnly
		}
	}
	clean := filepath.Clean(source)
	switch {
	case err != nil:
		return mount, err
	case strings.HasSuffix(source, ".sock"):
		return mount, errors.New("it wants a socket of this machine, which a sandbox does not have")
	case !filepath.IsAbs(source):
		return mount, fmt.Errorf("it wants %.100q to be mounted, which is no folder of this machine", source)
	case clean != filepath.Clean(target):
		return mount, fmt.Errorf("it wants %.100q to be at %.100q; in a sandbox a folder is at the same path as on this machine", source, target)
	case mountrule.Problem(clean) != "":
		return mount, errors.New(mountrule.Problem(clean))
	}
	return settingsfile.EntryMount{Path: settingsfile.Escape(clean), Mode: strings.TrimPrefix(mode, config.MountReadOnly)}, nil
}

// longMount reads the text of --mount.
func longMount(text string) (source, target, mode string, err error) {
	mode = config.MountWritable
	for field := range strings.SplitSeq(text, ",") {
		switch key, value, _ := strings.Cut(field, "="); key {
		case "type":
			if value != "bind" {
				return "", "", "", fmt.Errorf("it wants a mount of the type %.20q; only folders of this machine can be mounted", value)
			}
		case "src", "source":
			source = value
		case "dst", "destination", "target":
			target = value
		case "ro", "readonly":
			mode = config.MountReadOnly
		default:
			return "", "", "", fmt.Errorf("it wants a mount with %.40q, which is not supported", key)
		}
	}
	return source, target, mode, nil
}
