package candidate_test

import (
	"strings"
	"testing"

	"sallyport/internal/candidate"
)

// imagePack returns the content of a server with one image.
func imagePack(more string) string {
	return `"packages": [{"registryType": "oci", "identifier": "ghcr.io/acme/weather-mcp:1.2.3", "transport": {"type": "stdio"}` + more + `}]`
}

func TestImageEntry(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("ab", 32)
	for _, test := range []struct {
		name, server string
		values       candidate.Values
		want         string
	}{
		{"image", imagePack(""), nil, "  weather:\n    isolate:\n      image: ghcr.io/acme/weather-mcp:1.2.3\n"},
		{"an older entry", `"packages": [{"registryType": "oci", "registryBaseUrl": "https://ghcr.io", "identifier": "acme/weather", "version": "1.2.3"}]`, nil, "image: ghcr.io/acme/weather:1.2.3\n"},
		{"a digest", strings.Replace(imagePack(""), ":1.2.3", digest, 1), nil, "image: ghcr.io/acme/weather-mcp" + digest + "\n"},
		{"options without a meaning", imagePack(`, "runtimeHint": "docker", "runtimeArguments": [{"type": "positional", "value": "run"}, {"type": "named", "name": "-i"}, {"type": "named", "name": "--rm"}, {"type": "named", "name": "--pull", "value": "always"}]`),
			nil, "    isolate:\n      image: ghcr.io/acme/weather-mcp:1.2.3\n"},
		{"variables", imagePack(`, "runtimeArguments": [{"type": "named", "name": "-e", "value": "API_KEY={key}", "variables": {"key": {"isSecret": true, "isRequired": true}}}, {"type": "named", "name": "--env=MODE=fast"}], "environmentVariables": [{"name": "UNIT", "default": "C"}]`),
			nil, "env:\n      API_KEY: ${WEATHER_KEY}\n      MODE: fast\n      UNIT: C\n"},
		{"arguments and entry point", imagePack(`, "runtimeArguments": [{"type": "named", "name": "--entrypoint", "value": "/bin/serve"}], "packageArguments": [{"type": "positional", "value": "stdio"}]`),
			nil, "command: /bin/serve\n    args: [stdio]\n"},
		{"mounts", imagePack(`, "runtimeArguments": [{"type": "named", "name": "--mount", "value": "type=bind,src={from},dst={to},readonly", "variables": {"from": {"isRequired": true}, "to": {"isRequired": true}}},
			{"type": "named", "name": "-v", "value": "{dir}:/srv/$x", "variables": {"dir": {}}}]`),
			candidate.Values{"from": {"/srv/docs"}, "to": {"/srv/docs/"}, "dir": {"/srv/$x"}}, "mounts:\n        - path: /srv/docs\n        - path: /srv/$$x\n          mode: rw\n"},
	} {
		c, err := candidate.Of(entryOf(t, test.server), candidate.Choice{})
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		made, err := c.Entry(optionsOf(test.values))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if got := written(t, made.Entry); !strings.Contains(got, test.want) {
			t.Errorf("%s:\n%s\nwant in it:\n%s", test.name, got, test.want)
		}
	}
}

// TestImageRefused: what would take an image out of its sandbox, and what a sandbox does not have, is refused with the reason.
func TestImageRefused(t *testing.T) {
	option := func(name, value string) string {
		return imagePack(`, "runtimeArguments": [{"type": "named", "name": "` + name + `", "value": "` + value + `"}]`)
	}
	for _, test := range []struct{ server, want string }{
		{strings.Replace(imagePack(""), "ghcr.io", "https://ghcr.io", 1), "is not the name of an image"},
		{strings.Replace(imagePack(""), ":1.2.3", " --privileged", 1), "is not the name of an image"},
		{strings.Replace(imagePack(""), "stdio", "streamable-http", 1), "it listens at an address"},
		{option("--network", "host"), `the option "--network" of docker run: a server has the network of isolate.hosts only`},
		{option("--network=host", ""), "a server has the network of isolate.hosts only"},
		{imagePack(`, "runtimeArguments": [{"type": "positional", "value": "--net=host"}]`), "a server has the network of isolate.hosts only"},
		{option("--privileged", ""), "a server has no privileges"},
		{option("-v", "/var/run/docker.sock:/var/run/docker.sock"), "the socket of Docker"},
		{option("--mount", "type=bind,src=/run/x.sock,dst=/run/x.sock"), "a socket of this machine"},
		{option("-v", "cache:/cache"), `wants "cache" to be mounted, which is no folder`},
		{option("-v", "/srv/a:/data"), `wants "/srv/a" to be at "/data"; in a sandbox a folder is at the same path`},
		{option("--mount", "type=volume,src=/a,dst=/a"), `a mount of the type "volume"`},
		{option("-p", "80:80"), "has no ports"},
		{option("--user", "0"), `the option "--user" of docker run, which is not supported`},
		{option("--entrypoint", "sh -c x"), "which is not supported"},
		{option("-e", "LD_PRELOAD=/x"), "would change how programs run"},
	} {
		if _, err := candidate.Of(entryOf(t, test.server), candidate.Choice{}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s\n%v, want %s", test.server, err, test.want)
		}
	}
	c, err := candidate.Of(entryOf(t, imagePack(`, "runtimeArguments": [{"type": "named", "name": "-v", "value": "{from}:{to}", "variables": {"from": {}, "to": {}}}]`)), candidate.Choice{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Entry(optionsOf(candidate.Values{"from": {"/srv/a"}, "to": {"/data"}})); err == nil || !strings.Contains(err.Error(), "give the same absolute path") {
		t.Errorf("a folder at another path: %v", err)
	}
	opts := optionsOf(candidate.Values{"from": {"/srv/a"}, "to": {"/srv/a"}})
	opts.Bare = true
	if _, err := c.Entry(opts); err == nil || !strings.Contains(err.Error(), "in a sandbox only") {
		t.Errorf("without a sandbox: %v", err)
	}
}

func TestOfImage(t *testing.T) {
	for image, want := range map[string]string{
		"ghcr.io/acme/weather-mcp:1": "weather by ghcr.io/acme", "mcp/time": "time by docker.io/mcp", "busybox": "busybox by docker.io", "registry.example.com:5000/team/mcp-server": "team by registry.example.com:5000/team",
	} {
		if c, err := candidate.OfImage(image); err != nil || c.Name+" by "+c.Publisher != want || c.Image() != image {
			t.Errorf("%s: %s by %s, %v, want %s", image, c.Name, c.Publisher, err, want)
		}
	}
	if _, err := candidate.OfImage("Not an image"); err == nil || !strings.Contains(err.Error(), "image:NAME:TAG") {
		t.Error(err)
	}
}
