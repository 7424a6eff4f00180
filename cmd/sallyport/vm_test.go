package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf16"

	"gopkg.in/yaml.v3"
)

// twin stands for limactl or wsl.exe. It accepts the documented arguments only. Its machines are folders below
// $MACHINES, and commands "in" them run on this machine, with /usr/local and /etc of the folder.
type twin struct{ program string }

// fail ends the twin as the program ends for wrong arguments.
func (w twin) fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, w.program+": "+format+"\n", args...)
	os.Exit(1)
}

func (w twin) machines() string { return os.Getenv("MACHINES") }

// machine is the folder of a machine.
func (w twin) machine(name string) string { return filepath.Join(w.machines(), name) }

// make makes a machine, which must not exist.
func (w twin) make(name string) {
	if err := os.Mkdir(w.machine(name), 0o700); err != nil {
		w.fail("instance %q already exists", name)
	}
	for _, dir := range []string{"etc", "usr/local/bin"} {
		check(os.MkdirAll(filepath.Join(w.machine(name), dir), 0o700))
	}
	w.set(name, "Running")
}

func (w twin) set(name, status string) {
	check(os.WriteFile(filepath.Join(w.machine(name), "status"), []byte(status), 0o600))
}

// status is the state of a machine, "" for none.
func (w twin) status(name string) string {
	data, _ := os.ReadFile(filepath.Join(w.machine(name), "status"))
	return string(data)
}

// expect fails unless a machine is in a state.
func (w twin) expect(name, status string) {
	if got := w.status(name); got != status {
		w.fail("expected status %q of %q, got %q", status, name, got)
	}
}

// flags parses the flags of a command, and returns the other arguments. An unknown flag is fatal.
func (w twin) flags(args []string, define func(*flag.FlagSet)) []string {
	set := flag.NewFlagSet(w.program, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	define(set)
	if err := set.Parse(args); err != nil {
		w.fail("%v", err)
	}
	return set.Args()
}

// one returns the only argument.
func (w twin) one(args []string) string {
	if len(args) != 1 {
		w.fail("one argument is needed, not %q", args)
	}
	return args[0]
}

// inside runs a command in a machine.
func (w twin) inside(name, user string, words []string) {
	root := w.machine(name)
	local := func(text string) string {
		return strings.NewReplacer("/usr/local", root+"/usr/local", "/etc/wsl.conf", root+"/etc/wsl.conf").Replace(text)
	}
	cmd := exec.Command(local(words[0]), words[1:]...)
	switch {
	case words[0] == "sh" && words[1] == "-s":
		w.needRoot(user)
		script, err := io.ReadAll(os.Stdin)
		check(err)
		cmd = exec.Command("/bin/sh", append([]string{"-c", local(string(script)), "sh"}, words[2:]...)...)
		cmd.Env = append(os.Environ(), "PATH="+os.Getenv("GUESTBIN"))
	case words[0] == "tar":
		w.needRoot(user)
		cmd.Args[3] = local(cmd.Args[3])
		fallthrough
	default:
		cmd.Stdin = os.Stdin
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		if cmd.ProcessState != nil {
			os.Exit(cmd.ProcessState.ExitCode())
		}
		w.fail("exec: %v", err)
	}
}

func (w twin) needRoot(user string) {
	if user != "root" {
		w.fail("permission denied for %q", user)
	}
}

// limaFile are the keys of Lima's configuration that ours has, by templates/default.yaml of Lima 1.2.
type limaFile struct {
	MinimumLimaVersion string                            `yaml:"minimumLimaVersion"`
	Images             []struct{ Location, Arch string } `yaml:"images"`
	Disk               string                            `yaml:"disk"`
	Mounts             []string                          `yaml:"mounts"`
	Plain              bool                              `yaml:"plain"`
	Containerd         struct{ System, User *bool }      `yaml:"containerd"`
	SSH                struct {
		LoadDotSSHPubKeys *bool `yaml:"loadDotSSHPubKeys"`
		ForwardAgent      *bool `yaml:"forwardAgent"`
		ForwardX11        *bool `yaml:"forwardX11"`
	} `yaml:"ssh"`
}

// check is that the machine sees nothing of the host, and that both processors have an image.
func (f limaFile) check() string {
	var arches []string
	for _, image := range f.Images {
		arches = append(arches, image.Arch)
		if !strings.HasPrefix(image.Location, "https://") {
			return "an image without https"
		}
	}
	off := func(flag *bool) bool { return flag != nil && !*flag }
	switch {
	case !slices.Equal(arches, []string{"x86_64", "aarch64"}):
		return fmt.Sprint("images for ", arches)
	case !f.Plain || len(f.Mounts) > 0 || !off(f.SSH.ForwardAgent) || !off(f.SSH.ForwardX11) || !off(f.SSH.LoadDotSSHPubKeys):
		return "something of the host is visible"
	case !off(f.Containerd.System) || !off(f.Containerd.User):
		return "containerd is not needed"
	}
	return ""
}

// limactl is Lima: https://lima-vm.io/docs/reference/limactl/.
func limactl() {
	w := twin{"limactl"}
	args := w.flags(os.Args[1:], func(f *flag.FlagSet) { f.Bool("tty", true, "") })
	if len(args) == 0 {
		w.fail("a command is needed")
	}
	switch command, args := args[0], args[1:]; command {
	case "list":
		w.limaList(args)
	case "start":
		w.limaStart(args)
	case "stop":
		name := w.one(w.flags(args, func(*flag.FlagSet) {}))
		w.expect(name, "Running")
		w.set(name, "Stopped")
	case "delete":
		name := w.one(w.flags(args, func(f *flag.FlagSet) { f.Bool("force", false, "") }))
		check(os.RemoveAll(w.machine(name)))
	case "shell":
		w.limaShell(args)
	default:
		w.fail("unknown command %q", command)
	}
}

func (w twin) limaList(args []string) {
	if rest := w.flags(args, func(f *flag.FlagSet) { f.Bool("json", false, "") }); len(rest) > 0 || len(args) != 1 {
		w.fail("list %q", args)
	}
	entries, err := os.ReadDir(w.machines())
	check(err)
	if len(entries) == 0 {
		fmt.Fprintln(os.Stderr, `time="2026-01-01T00:00:00Z" level=warning msg="No instance found. Run `+"`limactl create`"+` to create an instance."`)
	}
	for _, entry := range entries {
		check(json.NewEncoder(os.Stdout).Encode(map[string]any{"name": entry.Name(), "status": w.status(entry.Name()), "arch": "x86_64", "cpus": 4}))
	}
}

func (w twin) limaStart(args []string) {
	var name string
	arg := w.one(w.flags(args, func(f *flag.FlagSet) { f.StringVar(&name, "name", "", "") }))
	if name == "" {
		w.expect(arg, "Stopped")
		w.set(arg, "Running")
		return
	}
	file, err := os.Open(arg)
	check(err)
	var config limaFile
	strict := yaml.NewDecoder(file)
	strict.KnownFields(true)
	check(strict.Decode(&config))
	if wrong := config.check(); wrong != "" {
		w.fail("%s: %s", arg, wrong)
	}
	w.make(name)
}

func (w twin) limaShell(args []string) {
	var dir string
	args = w.flags(args, func(f *flag.FlagSet) { f.StringVar(&dir, "workdir", "", "") })
	w.expect(args[0], "Running")
	if dir != "/" || len(args) == 1 {
		w.fail("this shell has no terminal")
	}
	fmt.Println("Linux lima-" + args[0]) // as a login says
	if args[1] == "sudo" {
		w.inside(args[0], "root", args[2:])
		return
	}
	w.inside(args[0], "me", args[1:])
}

// wsl is WSL: https://learn.microsoft.com/windows/wsl/basic-commands, and wsl --help of version 2.5.
func wsl() {
	w := twin{"wsl.exe"}
	if len(os.Args) == 1 {
		w.fail("a command is needed")
	}
	switch args := os.Args[2:]; os.Args[1] {
	case "--list":
		w.wslList(args)
	case "--install":
		if len(args) != 7 || args[0] != "Debian" || args[1] != "--name" || args[3] != "--location" || !filepath.IsAbs(args[4]) || args[5] != "--no-launch" || args[6] != "--web-download" {
			w.fail("--install %q", args)
		}
		w.make(args[2])
		w.set(args[2], "Stopped")
	case "--import":
		if len(args) != 5 || !filepath.IsAbs(args[1]) || args[3] != "--version" || args[4] != "2" {
			w.fail("--import %q", args)
		}
		_, err := os.Stat(args[2])
		check(err)
		w.make(args[0])
		w.set(args[0], "Stopped")
	case "--terminate":
		w.set(w.one(args), "Stopped")
	case "--unregister":
		check(os.RemoveAll(w.machine(w.one(args))))
	default:
		w.wslRun(os.Args[1:])
	}
}

// wslList prints names as wsl.exe does: in UTF-16, unless WSL_UTF8 is 1. Without any it fails.
func (w twin) wslList(args []string) {
	running := slices.Equal(args, []string{"--running", "--quiet"})
	if !running && !slices.Equal(args, []string{"--quiet"}) {
		w.fail("--list %q", args)
	}
	entries, err := os.ReadDir(w.machines())
	check(err)
	text := "Ubuntu-24.04\r\n"
	for _, entry := range entries {
		if !running || w.status(entry.Name()) == "Running" {
			text += entry.Name() + "\r\n"
		}
	}
	if os.Getenv("WSL_UTF8") == "1" && os.Getenv("OLDWSL") == "" {
		fmt.Print(text)
		return
	}
	for _, unit := range utf16.Encode([]rune(text)) {
		os.Stdout.Write([]byte{byte(unit), byte(unit >> 8)})
	}
}

func (w twin) wslRun(args []string) {
	var name, user, dir string
	var run bool
	words := w.flags(args, func(f *flag.FlagSet) {
		f.StringVar(&name, "distribution", "", "")
		f.StringVar(&user, "user", "", "")
		f.StringVar(&dir, "cd", "", "")
		f.BoolVar(&run, "exec", false, "")
	})
	if w.status(name) == "" || !run || dir != "/" || len(words) == 0 {
		w.fail("%q", args)
	}
	w.set(name, "Running")
	if made, _ := os.ReadFile(filepath.Join(w.machine(name), "etc", "wsl.conf")); user != "root" && !strings.Contains(string(made), "default=sallyport\n") {
		w.fail("there is no user %q", user)
	}
	w.inside(name, user, words)
}
