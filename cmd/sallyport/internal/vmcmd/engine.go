package vmcmd

import (
	_ "embed"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"

	"sallyport/internal/machine"
)

// lifecycle is the state of a virtual machine.
type lifecycle string

const (
	absent  lifecycle = "absent"
	stopped lifecycle = "stopped"
	running lifecycle = "running"
)

// engine has the command lines of a program that runs virtual machines. docs/how-to/macos-and-windows.md lists them.
type engine struct {
	kind    machine.Kind
	program string
	// hint is how people get the program.
	hint string
	// address is where the settings find the worker.
	address machine.Address
	// start, stop, remove and shell are whole command lines; start is nil if a command starts the machine by itself.
	start, stop, remove, shell []string
	// asRoot and asUser are followed by a command that runs in the machine.
	asRoot, asUser []string
}

func limaEngine(name string) engine {
	inside := []string{"limactl", "--tty=false", "shell", "--workdir", "/", name}
	return engine{
		kind: machine.Lima, program: "limactl", hint: "install Lima: brew install lima",
		address: machine.Address{Kind: machine.Lima, Host: name},
		start:   []string{"limactl", "--tty=false", "start", name},
		stop:    []string{"limactl", "--tty=false", "stop", name},
		remove:  []string{"limactl", "--tty=false", "delete", "--force", name},
		shell:   []string{"limactl", "shell", "--workdir", "/", name},
		asRoot:  append(slices.Clone(inside), "sudo"),
		asUser:  inside,
	}
}

func wslEngine(name string) engine {
	inside := func(user string) []string {
		return []string{"wsl.exe", "--distribution", name, "--user", user, "--cd", "/", "--exec"}
	}
	return engine{
		kind: machine.WSL, program: "wsl.exe", hint: "install WSL in PowerShell: wsl --install --no-distribution, then restart Windows",
		address: machine.Address{Kind: machine.WSL, User: "sallyport", Host: name},
		stop:    []string{"wsl.exe", "--terminate", name},
		remove:  []string{"wsl.exe", "--unregister", name},
		shell:   []string{"wsl.exe", "--distribution", name, "--cd", "~"},
		asRoot:  inside("root"),
		asUser:  inside("sallyport"),
	}
}

// limaConfig is the configuration of the machine.
//
//go:embed lima.yaml
var limaConfig []byte

// provisionScript installs the interpreters in a machine.
//
//go:embed provision.sh
var provisionScript string

// create returns the command line that makes and starts a machine: of Lima by the configuration at config, of WSL in the
// folder location, from the root file system rootfs or, without one, as a new Debian.
func (e engine) create(config, location, rootfs string) []string {
	name := e.address.Host
	switch {
	case e.kind == machine.Lima:
		return []string{"limactl", "--tty=false", "start", "--name=" + name, config}
	case rootfs != "":
		return []string{"wsl.exe", "--import", name, location, rootfs, "--version", "2"}
	}
	return []string{"wsl.exe", "--install", "Debian", "--name", name, "--location", location, "--no-launch", "--web-download"}
}

// lists returns the command lines that print the state.
func (e engine) lists() [][]string {
	if e.kind == machine.Lima {
		return [][]string{{"limactl", "list", "--json"}}
	}
	return [][]string{{"wsl.exe", "--list", "--quiet"}, {"wsl.exe", "--list", "--running", "--quiet"}}
}

// stateOf reads the state from the output of [engine.lists].
func (e engine) stateOf(outputs [][]byte) lifecycle {
	if e.kind == machine.Lima {
		return limaState(outputs[0], e.address.Host)
	}
	for i, state := range []lifecycle{running, stopped} {
		names := strings.Split(strings.ReplaceAll(wslText(outputs[1-i]), "\r\n", "\n"), "\n")
		if slices.ContainsFunc(names, func(line string) bool { return strings.EqualFold(strings.TrimSpace(line), e.address.Host) }) {
			return state
		}
	}
	return absent
}

// limaState reads lines of JSON, one for each machine.
func limaState(output []byte, name string) lifecycle {
	for line := range strings.Lines(string(output)) {
		var one struct{ Name, Status string }
		if json.Unmarshal([]byte(line), &one) != nil || one.Name != name {
			continue
		}
		if one.Status == "Running" {
			return running
		}
		return stopped
	}
	return absent
}

// wslText decodes the output of wsl.exe itself, which is UTF-16 unless it knows WSL_UTF8.
func wslText(output []byte) string {
	if !slices.Contains(output, 0) {
		return string(output)
	}
	units := make([]uint16, 0, len(output)/2)
	for pair := range slices.Chunk(output, 2) {
		if len(pair) == 2 {
			units = append(units, uint16(pair[0])|uint16(pair[1])<<8)
		}
	}
	return strings.TrimPrefix(string(utf16.Decode(units)), "\ufeff")
}

// placesOf returns where the archive for Linux is looked for, by the path of this program.
func placesOf(program string) []string {
	dir := filepath.Dir(program)
	return []string{filepath.Join(dir, "..", "share", "sallyport"), dir}
}
