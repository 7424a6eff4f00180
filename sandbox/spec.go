//go:build linux

package sandbox

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Where things are inside a sandbox.
const (
	guestDir   = "/opt/sallyport"
	serversDir = "/servers"
	bridgeDir  = "/run/sallyport"
	nobody     = 65534
	tmpSize    = 64 << 20
	tmpInodes  = 20_000
	// sentryHeadroom is what a cgroup allows over Limits.Memory for gVisor itself and the interpreter's start.
	sentryHeadroom = 192 << 20
)

// spec writes the OCI runtime configuration of a sandbox. Every value in it is ours: nothing comes from the program.
func (h *Host) spec(job Job, bridgeSource string) ([]byte, error) {
	mounts := append(h.mounts(), tmpfs("/workspace", job.Limits.Workspace, job.Limits.Inodes, "0777"), bind(bridgeDir, bridgeSource))
	return h.write(h.rootfs(), h.process(job), mounts)
}

// write writes the configuration of a sandbox, what all of them have in common included.
func (h *Host) write(root string, process *specs.Process, mounts []specs.Mount) ([]byte, error) {
	spec := specs.Spec{
		Version:  specs.Version,
		Hostname: "sandbox",
		Root:     &specs.Root{Path: root, Readonly: true},
		Process:  process,
		Mounts:   mounts,
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.NetworkNamespace}, {Type: specs.IPCNamespace},
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

func (h *Host) process(job Job) *specs.Process {
	return &specs.Process{
		Args:            h.args(job),
		Cwd:             "/workspace",
		Env:             environment("/workspace"),
		User:            specs.User{UID: nobody, GID: nobody},
		Capabilities:    &specs.LinuxCapabilities{},
		NoNewPrivileges: true,
		Rlimits:         rlimits(job),
	}
}

func environment(home string) []string {
	return []string{"PATH=/usr/bin", "HOME=" + home, "TMPDIR=/tmp", "LANG=C.UTF-8", "MALLOC_ARENA_MAX=1"}
}

func (h *Host) args(job Job) []string {
	if job.Interpreter == Node {
		heap := max(64, (job.Limits.Memory-96<<20)>>20) // node itself needs about 60 MB beside its heap
		return []string{h.node.inside, "--enable-source-maps", "--no-warnings", "--stack-trace-limit=30",
			"--max-old-space-size=" + strconv.FormatInt(heap, 10), guestDir + "/guest.mjs"}
	}
	return []string{h.python.inside, "-I", "-S", "-B", guestDir + "/guest.py"}
}

func rlimits(job Job) []specs.POSIXRlimit {
	limits := commonRlimits(job.Limits.Processes, job.Limits.OpenFiles, job.Limits.FileSize)
	if job.Interpreter == Python {
		// Python then raises MemoryError, which a model can read; the hard limit leaves
		// room to report it. V8 reserves far more address space than it uses, so node
		// has its own heap limit instead.
		memory := uint64(job.Limits.Memory)
		limits = append(limits, specs.POSIXRlimit{Type: "RLIMIT_AS", Soft: memory, Hard: memory + 64<<20})
	}
	return limits
}

// mounts are those of every sandbox.
func (h *Host) mounts() []specs.Mount {
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		tmpfs("/tmp", tmpSize, tmpInodes, "1777"),
		tmpfs("/dev/shm", tmpSize, tmpInodes, "1777"),
		bind(guestDir, filepath.Join(h.dir, "guest")),
		bind(serversDir, h.servers()),
	}
	for _, dir := range h.system {
		mounts = append(mounts, bind(dir, dir))
	}
	for _, interpreter := range []interpreter{h.python, h.node} {
		if interpreter.inside != interpreter.path {
			mounts = append(mounts, bind(interpreter.inside, interpreter.path))
		}
	}
	return mounts
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

// tmpfs is a file system in the sandbox's own memory; its root folder is one of the inodes.
func tmpfs(at string, size int64, inodes int, mode string) specs.Mount {
	return specs.Mount{Destination: at, Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev",
		"size=" + strconv.FormatInt(size, 10), "nr_inodes=" + strconv.Itoa(inodes+1), "mode=" + mode}}
}

func bind(at, source string) specs.Mount {
	return specs.Mount{Destination: at, Type: "bind", Source: source, Options: []string{"bind", "ro", "nosuid", "nodev"}}
}
