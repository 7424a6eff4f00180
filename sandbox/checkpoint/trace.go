package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// pathArguments are the arguments of a system call that name a file: positions of a directory (-1 for none) and a path.
type pathArguments [][2]int

var (
	onlyPath  = pathArguments{{-1, 0}}
	twoPaths  = pathArguments{{-1, 0}, {-1, 1}}
	atPath    = pathArguments{{0, 1}}
	atTwice   = pathArguments{{0, 1}, {2, 3}}
	readCalls = map[string]pathArguments{
		"open": onlyPath, "openat": atPath, "stat": onlyPath, "lstat": onlyPath, "newfstatat": atPath, "statx": atPath, "access": onlyPath,
		"faccessat": atPath, "faccessat2": atPath, "readlink": onlyPath, "readlinkat": atPath, "execve": onlyPath, "execveat": atPath, "chdir": onlyPath,
	}
	changeCalls = map[string]pathArguments{
		"creat": onlyPath, "unlink": onlyPath, "unlinkat": atPath, "rmdir": onlyPath, "mkdir": onlyPath, "mkdirat": atPath, "rename": twoPaths, "renameat": atTwice,
		"renameat2": atTwice, "link": twoPaths, "linkat": atTwice, "symlink": {{-1, 1}}, "symlinkat": {{1, 2}}, "truncate": onlyPath, "chmod": onlyPath,
		"fchmodat": atPath, "chown": onlyPath, "lchown": onlyPath, "fchownat": atPath, "utimensat": atPath, "mknod": onlyPath, "mknodat": atPath,
		"setxattr": onlyPath, "lsetxattr": onlyPath,
	}
	networkCalls = []string{"connect", "bind", "sendto", "sendmsg", "sendmmsg"}
)

// Syscalls are the system calls of which a trace tells what a program used: files by path, and sockets.
var Syscalls = slices.Concat(slices.Sorted(maps.Keys(readCalls)), slices.Sorted(maps.Keys(changeCalls)), networkCalls)

// Activity is what a program used, by the trace of its system calls. All of it is untrusted.
type Activity struct {
	// Looked are the paths that it looked at, Missing those among them that do not exist for it, Written those that it changed or
	// tried to.
	Looked, Missing, Written []string
	// Opened are those that it opened.
	Opened []string
	// Network are the internet sockets that it used, as "connect 198.18.0.1:53".
	Network []string
}

// maxTrace bounds the log that is read, in bytes.
const maxTrace = 64 << 20

var (
	// traced matches the end of a system call: name, arguments, result.
	traced = regexp.MustCompile(`^I\d{4} [0-9:.]+ +\d+ strace\.go:\d+\] \[ *\d+: *\d+\] .{0,16}? X (\w+)\((.*)\) = (.*)$`)
	// logged matches the start of each line of the log.
	logged = regexp.MustCompile(`^[DIWEF]\d{4} `)
	// next matches the end of an argument.
	next = regexp.MustCompile(`, (?:0x|O_|0o|AT_FDCWD|null)`)
	// address matches the address of an internet socket.
	address = regexp.MustCompile(`Family: AF_INET6?, Addr: ([^,}]+), Port: (\d+)`)
	writes  = regexp.MustCompile(`\bO_(WRONLY|RDWR|CREAT|TRUNC|APPEND)\b`)
)

// ErrTrace means that a trace cannot be read completely, because of a path with a line break or too many system calls.
var ErrTrace = errors.New("the trace of its system calls is incomplete")

// ReadTrace reads the logs of runsc in a directory. cwd is the first working directory of the program.
func ReadTrace(dir, cwd string) (Activity, error) {
	var a Activity
	files, err := filepath.Glob(filepath.Join(dir, "*.boot.txt"))
	if err == nil && len(files) == 0 {
		err = ErrTrace
	}
	for _, name := range files {
		err = errors.Join(err, a.readFile(name, cwd))
	}
	for _, list := range []*[]string{&a.Looked, &a.Missing, &a.Written, &a.Opened, &a.Network} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if err != nil {
		return a, fmt.Errorf("read trace: %w", err)
	}
	return a, nil
}

func (a *Activity) readFile(name, cwd string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || info.Size() > maxTrace {
		return ErrTrace
	}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	ofCall := false // the last line that began is about a system call
	for lines.Scan() {
		line := lines.Text()
		if parts := traced.FindStringSubmatch(line); parts != nil {
			cwd = a.add(parts[1], parts[2], parts[3], cwd)
		}
		if logged.MatchString(line) {
			ofCall = strings.Contains(line, " strace.go:")
		} else if ofCall { // a path has a line break
			err = ErrTrace
		}
	}
	return errors.Join(err, lines.Err())
}

// add adds one system call, and returns the working directory after it.
func (a *Activity) add(name, text, result, cwd string) string {
	if slices.Contains(networkCalls, name) {
		if at := address.FindStringSubmatch(text); at != nil {
			a.Network = append(a.Network, name+" "+strings.TrimSpace(at[1])+":"+at[2])
		}
		return cwd
	}
	which, change := changeCalls[name]
	if !change {
		which, change = readCalls[name], strings.HasPrefix(name, "open") && writes.MatchString(text)
	}
	args := split(text)
	for _, position := range which {
		at := pathOf(args, position, cwd)
		if at == "" {
			continue
		}
		a.Looked = append(a.Looked, at)
		if strings.Contains(result, "errno=2 ") {
			a.Missing = append(a.Missing, at)
		}
		if strings.HasPrefix(name, "open") {
			a.Opened = append(a.Opened, at)
		}
		if change {
			a.Written = append(a.Written, at)
		}
		if name == "chdir" && strings.HasPrefix(result, "0 ") {
			cwd = at
		}
	}
	return cwd
}

// split splits the arguments of a system call.
func split(text string) (args []string) {
	for {
		at := next.FindStringIndex(text)
		if at == nil {
			return append(args, text)
		}
		args, text = append(args, text[:at[0]]), text[at[0]+2:]
	}
}

// pathOf returns the absolute path that a system call names, "" for none.
func pathOf(args []string, position [2]int, cwd string) string {
	if position[1] >= len(args) {
		return ""
	}
	_, at, _ := strings.Cut(args[position[1]], " ") // after the address
	from := cwd
	if position[0] >= 0 {
		if _, from, _ = strings.Cut(args[position[0]], " "); !path.IsAbs(from) && !path.IsAbs(at) {
			return "" // a descriptor without a path
		}
	}
	if path.IsAbs(at) {
		return path.Clean(at)
	}
	return path.Join(from, at)
}
