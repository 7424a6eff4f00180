package candidate

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sallyport/internal/containerrun"
	"sallyport/internal/imageref"
	"sallyport/internal/registry"
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
	takes, idle := containerrun.Idle(name)
	switch {
	case idle && (takes || a.Value == ""):
		return nil
	case containerrun.Refused(name) != "":
		return fmt.Errorf("it wants the option %.40q of docker run: %s", name, containerrun.Refused(name))
	case name == "-e" || name == "--env":
		return c.addEnvOption(a)
	case name == "-v" || name == "--volume" || name == "--mount":
		return c.addMountOption(name, a)
	case name == "--entrypoint" && containerrun.Program.MatchString(a.Value):
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
		if _, err := containerrun.Mount(parts[0].text, m.long); err != nil {
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

// mountAll adds the folders that the options of an image name.
func (m *maker) mountAll() error {
	for _, option := range m.Candidate.mounts {
		if _, ok := m.join(option.parts); !ok {
			continue
		}
		mount, err := containerrun.Mount(m.plain(option.parts), option.long)
		if err != nil {
			return &tool.Error{Kind: tool.Invalid, Message: "with these values, " + err.Error(), Hint: "give the same absolute path of a folder for both"}
		}
		if !slices.Contains(m.mounts, mount) {
			m.mounts = append(m.mounts, mount)
		}
	}
	return nil
}
