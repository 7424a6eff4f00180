"""Runs in the sandbox that installs. Reads one line of JSON that says what, answers with one that
says which index that is, passes what pip or npm ask for on to the proxy, and writes one line of
JSON about it, then a tar of the files. Where it says what came out the host trusts nothing of it."""
import base64, json, os, socket, subprocess, sys, tarfile, threading

CA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ca.pem")
SOCKET = "/run/sallyport/service.sock"
FILES = "/tmp/files"


def pump(source, sink):
    try:
        while True:
            data = source.recv(65536)
            if not data:
                break
            sink.sendall(data)
    except OSError:
        pass
    for end in (source, sink):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def forward(conn):
    out = socket.socket(socket.AF_UNIX)
    with conn, out:
        try:
            out.connect(SOCKET)
        except OSError:
            return
        back = threading.Thread(target=pump, args=(out, conn), daemon=True)
        back.start()
        pump(conn, out)
        back.join()


def listen():
    server = socket.create_server(("127.0.0.1", 0), backlog=64)

    def accept():
        while True:
            conn, _ = server.accept()
            threading.Thread(target=forward, args=(conn,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return "http://127.0.0.1:%d" % server.getsockname()[1]


class Failure(Exception):
    def __init__(self, kind, text=""):
        super().__init__(text)
        self.kind, self.text = kind, text


def run(args, env, cwd="/tmp"):
    done = subprocess.run(args, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        text = done.stdout[-20000:].decode("utf-8", "replace")
        if "No space left" in text:
            raise Failure("space", text)
        raise Failure("failed", text)


def environment(proxy):
    return {
        "PATH": "/usr/bin", "HOME": "/tmp/home", "TMPDIR": "/tmp", "LANG": "C.UTF-8",
        "HTTP_PROXY": proxy, "HTTPS_PROXY": proxy, "http_proxy": proxy, "https_proxy": proxy,
        "SSL_CERT_FILE": CA, "NODE_EXTRA_CA_CERTS": CA,
    }


# Python

RUN_PIP = "import runpy, sys\nif sys.argv[1]: sys.path.insert(0, sys.argv[1])\ndel sys.argv[1]\nrunpy.run_module('pip', run_name='__main__', alter_sys=True)"


def find_pip():
    """Finds a pip: the interpreter's own, else any of the machine's, which is Python alone."""
    import glob, importlib.util
    if importlib.util.find_spec("pip"):
        return ""
    version = "python%d.%d" % sys.version_info[:2]
    places = [os.path.dirname(os.path.dirname(p)) for p in glob.glob("/usr/lib/python3*/*-packages/pip/__init__.py")]
    places += glob.glob(sys.base_prefix + "/lib/" + version + "/ensurepip/_bundled/pip-*.whl")
    places += glob.glob("/usr/share/python-wheels/pip-*.whl") + glob.glob("/usr/lib/python3*/ensurepip/_bundled/pip-*.whl")
    places += ["/opt/pip"]  # that of the host, where an image has none
    for place in places:
        if subprocess.run([sys.executable, "-I", "-c", RUN_PIP, place, "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            return place
    raise Failure("nopip")


def pip_index(pip):
    """The index that pip itself takes, and where that keeps its files."""
    code = "import json, sys\nif sys.argv[1]: sys.path.insert(0, sys.argv[1])\n" \
        "from pip._internal.models.index import PyPI\nprint(json.dumps([PyPI.simple_url, [PyPI.file_storage_domain]]))"
    return json.loads(subprocess.run([sys.executable, "-I", "-c", code, pip], stdout=subprocess.PIPE, check=True).stdout)


def target():
    import sysconfig
    try:
        libc = "gnu" if os.confstr("CS_GNU_LIBC_VERSION") else "musl"
    except (OSError, ValueError):
        libc = "musl"
    name = "%s-%s-%s" % (sys.implementation.cache_tag, sysconfig.get_platform(), libc)
    return name.lower().replace("cpython-", "cp")


def python(request, proxy, where):
    pip = [sys.executable, "-I", "-c", RUN_PIP, where]
    common = ["--isolated", "--disable-pip-version-check", "--no-input", "--no-color", "--quiet", "--cache-dir", "/tmp/cache",
              "--retries", "1", "--timeout", "20", "--proxy", proxy, "--index-url", request["index"]]
    if os.path.exists(CA):
        common += ["--cert", CA]
    for host in request["insecure"]:
        common += ["--trusted-host", host]
    if not request["source"]:
        common += ["--only-binary", ":all:"]
    what = ["--", *request["requirements"]]
    if request["lock"]:
        with open("/tmp/lock.txt", "w") as file:
            file.writelines(line + "\n" for line in request["lock"])
        what = ["--no-deps", "--require-hashes", "-r", "/tmp/lock.txt"]
    env = environment(proxy)
    env["PIP_CONFIG_FILE"] = os.devnull
    run(pip + ["download", *common, "-d", FILES, *what], env)
    built = {}
    for name in sorted(os.listdir(FILES)):
        if not name.endswith(".whl"):
            wheels = "/tmp/built/" + str(len(built))
            run(pip + ["wheel", *common, "--no-deps", "-w", wheels, os.path.join(FILES, name)], env)
            built[name] = [os.path.join(wheels, wheel) for wheel in os.listdir(wheels)][0]
    report = {"target": target(), "built": {name: os.path.basename(wheel) for name, wheel in built.items()}}
    files = [(name, os.path.join(FILES, name)) for name in sorted(os.listdir(FILES))]
    return report, files + [("built/" + os.path.basename(wheel), wheel) for wheel in built.values()]


# npm


def find_npm():
    for path in ("/opt/npm/bin/npm-cli.js", "/usr/lib/node_modules/npm/bin/npm-cli.js", "/usr/share/nodejs/npm/bin/npm-cli.js"):
        if os.path.exists(path):
            return path
    raise Failure("nonpm")


def content(integrity):
    """The path of a tarball in npm's cache, which names files by their hashes."""
    for one in integrity.split():
        algorithm, _, value = one.partition("-")
        digest = base64.b64decode(value.split("?")[0]).hex()
        path = os.path.join("/tmp/npm/_cacache/content-v2", algorithm, digest[:2], digest[2:4], digest[4:])
        if algorithm == "sha512" and os.path.exists(path):
            return "sha512-" + digest, path
    return None


def npm_registry(node, path):
    args = [node, path, "config", "get", "registry", "--userconfig", "/tmp/none", "--globalconfig", "/tmp/none2"]
    return [subprocess.run(args, stdout=subprocess.PIPE, env=environment(""), cwd="/tmp", check=True).stdout.decode().strip(), []]


def npm(request, proxy, path):
    project = "/tmp/project"
    os.makedirs(project)
    with open(project + "/package.json", "w") as file:
        json.dump({"name": "environment", "version": "1.0.0", "private": True, "dependencies": request["dependencies"]}, file)
    common = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--cache", "/tmp/npm", "--registry", request["index"],
              "--omit-lockfile-registry-resolved", "--userconfig", "/tmp/none", "--globalconfig", "/tmp/none2", "--loglevel", "error",
              "--proxy", proxy, "--https-proxy", proxy, "--fetch-retries", "1", "--fetch-timeout", "30000", "--maxsockets", "8"]
    if os.path.exists(CA):
        common += ["--cafile", CA]
    command, env = [request["node"], path], environment(proxy)
    lock = project + "/package-lock.json"
    if request["npm"]:
        with open(lock, "w") as file:
            json.dump(request["npm"], file)
    run(command + ["ci" if request["npm"] else "install", *common], env, project)
    files = {}
    with open(project + "/node_modules/.package-lock.json") as file:
        for package in json.load(file)["packages"].values():
            found = content(package.get("integrity", ""))
            if found:
                files[found[0]] = found[1]
    with open(lock) as file:
        return {"npm": json.load(file)}, sorted(files.items())


def compiled(layer):
    """Compiles the modules of a layer, for it is read-only where they are imported."""
    import py_compile, time
    files, end = [], time.monotonic() + 60
    for folder, _, names in os.walk(layer):
        for name in names:
            if not name.endswith(".py") or time.monotonic() > end:
                continue
            source = os.path.join(folder, name)
            at = os.path.join(os.path.relpath(folder, layer), "__pycache__", "%s.%s.pyc" % (name[:-3], sys.implementation.cache_tag))
            path = os.path.join(FILES, str(len(files)))
            try:
                py_compile.compile(source, path, doraise=True, quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
                files.append((os.path.normpath(at), path))
            except (py_compile.PyCompileError, ValueError, RecursionError, MemoryError, OSError):
                pass  # templates and tests that are no Python
    return {}, files


def install(request, say):
    if request["language"] == "compile":
        say({})
        return compiled(request["layer"])
    index, hosts = request["index"], []
    try:
        where = find_npm() if request["language"] == "node" else find_pip()
        if not index:
            index, hosts = npm_registry(request["node"], where) if request["language"] == "node" else pip_index(where)
    finally:
        say({"index": index, "hosts": hosts})
    request["index"] = index
    return (npm if request["language"] == "node" else python)(request, listen(), where)


def main():
    out = os.dup(1)
    os.dup2(2, 1)  # whatever else prints must not come in between
    request = json.loads(sys.stdin.readline())
    os.makedirs("/tmp/home")
    os.makedirs(FILES)
    with os.fdopen(out, "wb") as stdout:
        def say(what):
            stdout.write(json.dumps(what).encode() + b"\n")
            stdout.flush()

        try:
            report, files = install(request, say)
        except Failure as failure:
            report, files = {"kind": failure.kind, "error": failure.text}, []
        except Exception as error:  # a fault of this program: it is told as such, and not as one of memory or pip
            where = error.__traceback__
            while where.tb_next:
                where = where.tb_next
            report, files = {"kind": "driver", "error": "%s: %s (line %d)" % (type(error).__name__, error, where.tb_lineno)}, []
        say(report)
        with tarfile.open(fileobj=stdout, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            for name, path in files:
                info = tarfile.TarInfo(name)
                info.size = os.path.getsize(path)
                with open(path, "rb") as file:
                    tar.addfile(info, file)


main()
