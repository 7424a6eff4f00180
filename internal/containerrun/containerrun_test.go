package containerrun_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sallyport/internal/containerrun"
	"sallyport/internal/settingsfile"
)

func TestConvert(t *testing.T) {
	given := settingsfile.Values{"TOKEN": "${TOKEN}"}
	for line, want := range map[string]string{
		"run -i --rm -e TOKEN acme/x:1 --a b":                             `{"Args":["--a","b"],"Env":{"TOKEN":"${TOKEN}"},"Image":"acme/x:1"}`,
		"container run --init=true --env=TOKEN acme/x":                    `{"Env":{"TOKEN":"${TOKEN}"},"Image":"acme/x"}`,
		"run -e TOKEN -e A=b=c --pull always -- acme/x":                   "the option -- of docker run",
		"run -e TOKEN -v /srv/a:/srv/a:ro acme/x":                         `{"Env":{"TOKEN":"${TOKEN}"},"Image":"acme/x","Mounts":[{"Path":"/srv/a","Mode":""}]}`,
		"run -e TOKEN --mount type=bind,src=/srv/$$a,dst=/srv/$$a acme/x": `{"Env":{"TOKEN":"${TOKEN}"},"Image":"acme/x","Mounts":[{"Path":"/srv/$$a","Mode":"rw"}]}`,
		"run -e TOKEN -m 2g -w /srv --entrypoint node acme/x y":           `{"Args":["y"],"Command":"node","Dir":"/srv","Env":{"TOKEN":"${TOKEN}"},"Image":"acme/x","Limits":{"memory":"2GiB"}}`,
		"run -e TOKEN --network none acme/x":                              `{"Env":{"TOKEN":"${TOKEN}"},"Image":"acme/x"}`,
		"run acme/x":                                                      "its variable TOKEN is one of the command",
		"run -e TOKEN -e OTHER acme/x":                                    "passes the variable OTHER on, which its settings do not have",
		"run -e TOKEN -v data:/data acme/x":                               "which is no folder of this machine",
		"run -e TOKEN -v ${HOME}:/data acme/x":                            "a folder that a variable names",
		"run -e TOKEN -v /srv/a:/data acme/x":                             "at the same path as on this machine",
		"run -e TOKEN -v /etc:/etc acme/x":                                "cannot be mounted",
		"run -e TOKEN -v /run/d.sock:/run/d.sock acme/x":                  "a socket of this machine",
		"run -e TOKEN --privileged acme/x":                                "no privileges of this machine",
		"run -e TOKEN -p 80:80 acme/x":                                    "has no ports",
		"run -e TOKEN --network=host acme/x":                              "isolate.hosts only",
		"run -e TOKEN --env-file /srv/e acme/x":                           "the option --env-file of docker run, which is not supported",
		"run -e TOKEN -m 1b acme/x":                                       "the option --memory 1b of docker run",
		"run -e TOKEN -w . acme/x":                                        "the option -w of docker run",
		"run -e TOKEN ${IMAGE}":                                           "its image is not known",
		"run -e TOKEN":                                                    "its image is not known",
		"run -e":                                                          "the option -e of docker run",
	} {
		words := strings.Fields(line)
		made, ok, err := containerrun.Convert(settingsfile.Entry{Name: "x", Command: "/usr/bin/docker", Args: words, Env: given, Dir: "/home/a"})
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			data, _ := json.Marshal(shown{made.Args, made.Command, made.Dir, made.Env, made.Image(), made.Isolate.Limits, made.Isolate.Mounts})
			got = string(data)
		}
		if !ok || !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	for _, e := range []settingsfile.Entry{{Command: "docker", Args: []string{"mcp", "gateway", "run"}}, {Command: "docker"}, {Command: "x", Args: []string{"run", "y"}}, {URL: "https://x.example"}} {
		if made, ok, err := containerrun.Convert(e); ok || err != nil || !made.Same(e) {
			t.Errorf("%+v: %+v, %t, %v", e, made, ok, err)
		}
	}
}

// shown is what a test compares.
type shown struct {
	Args         []string            `json:",omitempty"`
	Command, Dir string              `json:",omitempty"`
	Env          settingsfile.Values `json:",omitempty"`
	Image        string
	Limits       map[string]string         `json:",omitempty"`
	Mounts       []settingsfile.EntryMount `json:",omitempty"`
}
