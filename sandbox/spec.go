//go:build linux

package sandbox

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Paths, IDs and sizes inside a sandbox.
const (
	guestDir   = "/opt/sallyport"
	serversDir = "/servers"
	bridgeDir  = "/run/sallyport"
	nobodyID   = 65534
	tmpSize    = 64 << 20
	tmpInodes  = 20_000
	// sentryHeadroom is what a cgroup allows beyond Limits.Memory for gVisor itself and the interpreter's start.
	sentryHeadroom = 192 << 20
)

// hostPaths holds the host paths of the mounts that differ between sandboxes.
type hostPaths struct{ guest, servers, sockets string }

// specOf returns the OCI runtime configuration of a sandbox for programs. No value in it comes from the program.
func (h *Host) specOf(k kind, root *rootfs, at hostPaths) ([]byte, error) {
	process, err := h.process(k, root)
	if err != nil {
		return nil, err
	}
	mounts := append(commonMounts(at), workspaceMount(k), bind(bridgeDir, at.sockets))
	return encodeSpec(root.dir, process, append(mounts, root.mounts...), "")
}

// encodeSpec encodes the OCI configuration of a sandbox, including the parts that all sandboxes share. network is the path of the
// network namespace, "" for a new one without interfaces.
func encodeSpec(root string, process *specs.Process, mounts []specs.Mount, network string) ([]byte, error) {
	spec := specs.Spec{
		Version:  specs.Version,
		Hostname: "sandbox",
		Root:     &specs.Root{Path: root, Readonly: true},
		Process:  process,
		Mounts:   mounts,
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace, Path: network}, {Type: specs.IPCNamespace},
				{Type: specs.UTSNamespace}, {Type: specs.MountNamespace},
			},
		},
	}
	data, err := json.MarshalIndent(spec, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write sandbox spec: %w", err)
	}
	return data, nil
}

func (h *Host) process(k kind, root *rootfs) (*specs.Process, error) {
	program, err := root.program(k.interpreter)
	if err != nil {
		return nil, err
	}
	env := environ("/workspace", root.path)
	installed, _ := h.environments.get(k.environment)
	if len(installed.NodePath) > 0 && k.interpreter == Node {
		env = append(env, "NODE_PATH="+strings.Join(installed.NodePath, ":"))
	}
	process := &specs.Process{
		Args:            append([]string{program}, args(k, installed)...),
		Cwd:             "/workspace",
		Env:             env,
		User:            specs.User{UID: nobodyID, GID: nobodyID},
		Capabilities:    &specs.LinuxCapabilities{},
		NoNewPrivileges: true,
		Rlimits:         rlimits(k),
	}
	if k.forks {
		process.Env = append(env, "SALLYPORT_ZYGOTE="+zygoteSettings(k))
		process.User, process.Capabilities, process.Rlimits = specs.User{}, zygoteRights(), nil
	}
	return process, nil
}

func environ(home, path string) []string {
	return []string{"PATH=" + path, "HOME=" + home, "TMPDIR=/tmp", "LANG=C.UTF-8", "MALLOC_ARENA_MAX=1"}
}

// args returns the arguments of an interpreter. Those after Python's guest are package folders.
func args(k kind, installed Environment) []string {
	if k.interpreter == Node {
		heap := max(64, (k.memory-96<<20)>>20) // node needs about 60 MB in addition to its heap
		flags := []string{}
		if k.forks { // a fork has one thread
			flags = append(flags, "--single-threaded", "--v8-pool-size=0")
		}
		return append(flags, "--enable-source-maps", "--no-warnings", "--openssl-config="+guestDir+"/openssl.cnf", "--stack-trace-limit=30",
			"--max-old-space-size="+strconv.FormatInt(heap, 10), guestDir+"/guest.mjs")
	}
	return append([]string{"-I", "-S", "-B", guestDir + "/guest.py"}, installed.PythonPath...)
}

func rlimits(k kind) []specs.POSIXRlimit {
	limits := commonRlimits(k.processes, k.openFiles, k.fileSize)
	if k.interpreter == Python {
		// Python then raises MemoryError, which a model can read, before the watcher acts; the hard limit leaves
		// room to report it. V8 reserves far more address space than it uses, so node
		// has its own heap limit instead.
		memory := uint64(k.memory)
		limits = append(limits, specs.POSIXRlimit{Type: "RLIMIT_AS", Soft: memory - memory/8, Hard: memory + 64<<20})
	}
	return limits
}

// commonMounts returns the mounts of every sandbox, in addition to those of its root file system.
func commonMounts(at hostPaths) []specs.Mount {
	return []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		bind(guestDir, at.guest),
		bind(serversDir, at.servers),
		scratch("/tmp"), scratch("/dev/shm"),
	}
}

func commonRlimits(processes, openFiles int, fileSize int64) []specs.POSIXRlimit {
	limit := func(kind string, n uint64) specs.POSIXRlimit {
		return specs.POSIXRlimit{Type: kind, Soft: n, Hard: n}
	}
	return []specs.POSIXRlimit{
		limit("RLIMIT_NPROC", uint64(processes)),
		limit("RLIMIT_NOFILE", uint64(openFiles)),
		limit("RLIMIT_FSIZE", uint64(fileSize)),
		limit("RLIMIT_CORE", 0),
	}
}

func scratch(at string) specs.Mount { return tmpfs(at, tmpSize, tmpInodes, "1777") }

func workspaceMount(k kind) specs.Mount { return tmpfs("/workspace", k.workspace, k.inodes, "0777") }

// tmpfs returns the mount of a file system in the sandbox's memory; its root folder is one of the inodes.
func tmpfs(at string, size int64, inodes int, mode string) specs.Mount {
	return specs.Mount{Destination: at, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev",
		"size=" + strconv.FormatInt(size, 10), "nr_inodes=" + strconv.Itoa(inodes+1), "mode=" + mode}}
}

func bind(at, source string) specs.Mount {
	return specs.Mount{Destination: at, Type: "bind", Source: source, Options: []string{"bind", "ro", "nosuid", "nodev"}}
}
