package candidate

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sallyport/internal/config"
	"sallyport/internal/imageref"
	"sallyport/internal/registry"
	"sallyport/internal/settingsfile"
	"sallyport/internal/tool"
)

// kindImage is the type of the registry of a container image.
const kindImage = "oci"

// OfImage returns the candidate of a container image that no registry of servers describes.
func OfImage(image string) (Candidate, error) {
	if !imageref.Valid(image) {
		return Candidate{}, &tool.Error{Kind: tool.Invalid, Message: fmt.Sprintf("%.100q is not the name of an image", image), Hint: "write image:NAME:TAG or image:NAME@sha256:DIGEST, as in image:ghcr.io/owner/server:1.2.3"}
	}
	name := imageref.Name(image)
	owner := path.Dir(name)
	if !strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
		owner = strings.TrimSuffix("docker.io/"+owner, "/.")
	}
	return Candidate{Name: ShortName(path.Base(path.Dir(name)) + "/" + path.Base(name)), Source: "a registry of images", Server: name, Publisher: owner, kind: kindImage, image: image}, nil
}

// Image returns the reference of its container image, "" for none.
func (c Candidate) Image() string { return c.image }

// Pin sets the reference of its container image, with a digest.
func (c *Candidate) Pin(reference string) { c.image = reference }

// withImage returns the candidate that runs a container image. Arguments of docker run become settings of its sandbox.
func (c Candidate) withImage(p registry.Package) (Candidate, error) {
	image, err := imageOf(p)
	switch {
	case err != nil:
		return c, err
	case p.Transport.Type != "stdio" && p.Transport.Type != "":
		return c, fmt.Errorf("it listens at an address (%.20q); start it, and add its URL: sallyport upstreams add NAME --url URL", p.Transport.Type)
	case len(p.RuntimeArguments) > maxInputs || len(p.PackageArguments) > maxInputs || len(p.EnvironmentVariables) > maxInputs:
		return c, fmt.Errorf("it has more than %d arguments or variables", maxInputs)
	}
	c.kind, c.image = kindImage, image
	for _, a := range p.RuntimeArguments {
		if err := c.addRuntimeArgument(a); err != nil {
			return c, err
		}
	}
	return c, c.addAll(p)
}

// imageOf returns the reference of a package's image. Older entries have its registry and its version apart.
func imageOf(p registry.Package) (string, error) {
	image := p.Identifier
	if host := strings.TrimSuffix(strings.TrimPrefix(p.RegistryBaseURL, "https://"), "/"); host != "" && !strings.HasPrefix(image, host+"/") {
		image = host + "/" + image
	}
	if p.Version != "" && !imageref.Pinned(image) && imageref.Name(image) == image {
		image += ":" + p.Version
	}
	if !imageref.Valid(image) {
		return "", fmt.Errorf("%.100q is not the name of an image", image)
	}
	return image, nil
}

// idleOptions are options of docker run that the sandbox has anyway, or that mean nothing for it; the value of the map says whether they
// take a value.
var idleOptions = map[string]bool{
	"-i": false, "--interactive": false, "--rm": false, "--init": false, "-t": false, "--tty": false, "-it": false, "--read-only": false, "--cap-drop": true, "--pull": true,
	"--name": true, "--tmpfs": true, "--platform": true,
}

// refusedOptions are options of docker run that would take a server out of its sandbox, and why.
var refusedOptions = map[string]string{
	"--network": "a server has the network of isolate.hosts only", "--net": "a server has the network of isolate.hosts only", "--privileged": "a server has no privileges of this machine",
	"--cap-add": "a server has no capabilities", "--device": "a server has no devices of this machine", "-p": "a server over stdio has no ports", "--publish": "a server over stdio has no ports",
	"--pid": "a server sees its own processes only", "--ipc": "a server sees its own processes only", "--security-opt": "a server is in a sandbox",
}

var programName = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9/._-]{0,200}$`)

// addRuntimeArgument adds an argument of docker run.
func (c *Candidate) addRuntimeArgument(a registry.Argument) error {
	name, inline, _ := strings.Cut(a.Name, "=")
	if inline != "" {
		a.Value = inline
	}
	if a.Type == "positional" { // some entries have options as words
		if name, a.Value, _ = strings.Cut(a.Value, "="); name == "run" {
			return nil
		}
	}
	takes, idle := idleOptions[name]
	switch {
	case idle && (takes || a.Value == ""):
		return nil
	case refusedOptions[name] != "":
		return fmt.Errorf("it wants the option %.40q of docker run: %s", name, refusedOptions[name])
	case name == "-e" || name == "--env":
		return c.addEnvOption(a)
	case name == "-v" || name == "--volume" || name == "--mount":
		return c.addMountOption(name, a)
	case name == "--entrypoint" && programName.MatchString(a.Value):
		c.command = a.Value
		return nil
	}
	return fmt.Errorf("it wants the option %.40q of docker run, which is not supported", name)
}

// addEnvOption adds a variable, NAME=VALUE or NAME.
func (c *Candidate) addEnvOption(a registry.Argument) error {
	variable := registry.KeyValue{Template: a.Template}
	variable.Name, variable.Value, _ = strings.Cut(a.Value, "=")
	return c.addVariable(variable)
}

// addMountOption adds a folder of this machine. Its path is checked when it is known.
func (c *Candidate) addMountOption(option string, a registry.Argument) error {
	if strings.Contains(a.Value, "docker.sock") {
		return errors.New("it wants the socket of Docker, which is the right to do anything on this machine")
	}
	if a.Value == "" {
		return fmt.Errorf("it wants the option %.40q of docker run without a value, which is not supported", option)
	}
	parts, err := c.template(option, a.Template, false)
	if err != nil {
		return err
	}
	m := mountOption{long: option == "--mount", parts: parts}
	if len(parts) == 1 && parts[0].input == "" {
		if _, err := m.mount(parts[0].text); err != nil {
			return err
		}
	}
	c.mounts = append(c.mounts, m)
	return nil
}

// mountOption is a mount in the form of --mount (long) or of --volume.
type mountOption struct {
	long  bool
	parts []part
}

// mount reads the text of an option.
func (m mountOption) mount(text string) (mount settingsfile.EntryMount, err error) {
	source, target, mode := "", "", config.MountWritable
	if m.long {
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
	switch {
	case err != nil:
		return mount, err
	case strings.HasSuffix(source, ".sock"):
		return mount, errors.New("it wants a socket of this machine, which a sandbox does not have")
	case !filepath.IsAbs(source):
		return mount, fmt.Errorf("it wants %.100q to be mounted, which is no folder of this machine", source)
	case filepath.Clean(source) != filepath.Clean(target):
		return mount, fmt.Errorf("it wants %.100q to be at %.100q; in a sandbox a folder is at the same path as on this machine", source, target)
	}
	return settingsfile.EntryMount{Path: escapeReferences(filepath.Clean(source)), Mode: strings.TrimPrefix(mode, config.MountReadOnly)}, nil
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

// mountAll adds the folders that the options of an image name.
func (m *maker) mountAll() error {
	for _, option := range m.Candidate.mounts {
		if _, ok := m.join(option.parts); !ok {
			continue
		}
		mount, err := option.mount(m.plain(option.parts))
		if err != nil {
			return &tool.Error{Kind: tool.Invalid, Message: "with these values, " + err.Error(), Hint: "give the same absolute path of a folder for both"}
		}
		if !slices.Contains(m.mounts, mount) {
			m.mounts = append(m.mounts, mount)
		}
	}
	return nil
}
