package sandboxtest

import "sallyport/sandbox"

// rawBridge finds the guest's socket among the descriptors and speaks websocket on it, whatever the guest thinks of that.
const rawBridge = `
import os, socket, json, time, struct
def wire():
    for fd in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + fd).startswith("socket:"):
                s = socket.socket(fileno=os.dup(int(fd)))
                if s.family == socket.AF_UNIX and s.type == socket.SOCK_STREAM:
                    if str(s.getpeername()).endswith(".sock"): return s
        except OSError: pass
bridge = wire()
bridge.setblocking(True)
reader = bridge.makefile("rb", 1 << 16)
def head(first, size):
    if size < 126: return bytes((first, 0x80 | size))
    if size < 1 << 16: return bytes((first, 0xFE)) + size.to_bytes(2, "big")
    return bytes((first, 0xFF)) + size.to_bytes(8, "big")
def frame(first, payload): bridge.sendall(head(first, len(payload)) + b"\0\0\0\0" + payload)
def send(what): frame(0x81, json.dumps(what).encode())
def receive():
    first, size = reader.read(2)
    if size == 126: size, = struct.unpack(">H", reader.read(2))
    elif size == 127: size, = struct.unpack(">Q", reader.read(8))
    payload = reader.read(size)
    return json.loads(payload) if first & 0x0f in (1, 2) else receive()
`

// bridgeAttacks are attacks over the one way out.
var bridgeAttacks = []Attack{
	{
		ID: "F01", Name: "a second connection", Soft: true,
		Python: attempts + `
import socket, glob
def connect(path):
    s = socket.socket(socket.AF_UNIX); s.settimeout(3); s.connect(path); s.sendall(b"GET /v1 HTTP/1.1\r\nHost: sallyport\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2FsbHlwb3J0LWd1ZXN0IQ==\r\n\r\n")
    if not s.recv(100): raise OSError(111, "")
[attempt(lambda: connect("/run/sallyport/bridge.sock")), os.listdir("/run/sallyport"), attempt(lambda: os.listdir("/run/sallyport/..  ")), [attempt(lambda: connect(p)) for p in ("@STATE@/bridge.sock", "/run/sallyport/../bridge.sock", "/proc/1/root/run/sallyport/bridge.sock")]]`,
		Node: nodeAttempts + `export default [await attempt(() => new Promise((ok, no) => net.connect("/run/sallyport/bridge.sock").on("connect", ok).on("error", no))), fs.readdirSync("/run/sallyport")]`,
	},
	{
		ID: "F02", Name: "nothing else names an execution",
		Python: rawBridge + `
send({"type": "hello", "token": "x", "execution": "case-1"}); send({"type": "run", "code": "print('taken')"}); send({"type": "call", "id": 5, "tool": "test.echo", "args": {}, "token": "case-1", "session": "other", "principal": "root"})
receive()["value"]["json"]["execution"].startswith("case-")`,
		Value: "true",
	},
	{
		ID: "F04", Name: "another's id in a frame",
		Python: rawBridge + `
for name in ("execution", "execution_id", "Execution", "session", "principal", "caller", "id "):
    send({"type": "call", "id": 1, "tool": "test.echo", "args": {"_meta": {"execution": "victim"}}, name: "victim"})
sorted({receive()["value"]["json"]["execution"] == "victim" for _ in range(7)})`,
		Value: "[false]",
	},
	{
		ID: "F05", Name: "tools that are none",
		Python: rawBridge + `
names = ["gateway.reload", "../x", "test", "", "test.", ".echo", "a.b.c", "test.tools/call", "test.logging/setLevel", "test.sampling/createMessage", "test.initialize", "test.ECHO\0", "test.echo\n", "x" * 10000, None, 7, [], {}]
kinds = []
for i, name in enumerate(names[:-4]):
    send({"type": "call", "id": i, "tool": name, "args": {}}); answer = receive(); kinds.append(answer.get("error", {}).get("kind", "called"))
kinds`,
		Value: `["called","invalid","invalid","invalid","invalid","invalid","invalid","invalid","invalid","invalid","called","called","called","invalid"]`,
	},
	{
		ID: "F05", Name: "a tool's name that is no text ends the bridge", Status: sandbox.Crashed,
		Python: rawBridge + `
send({"type": "call", "id": 1, "tool": {"a": 1}, "args": {}}); time.sleep(30)`,
	},
	{
		ID: "F07", Name: "ids twice, below nothing and beyond everything",
		Python: rawBridge + `
ids = [1, 1, -1, -2**63, 2**63 - 1, 0]
for i in ids: send({"type": "call", "id": i, "tool": "test.echo", "args": {"of": i}})
for kind in ("result", "error", "progress", "run", "done?", "", "RUN"): send({"type": kind, "id": 1, "value": {"json": 1}})
answers = [receive() for _ in ids]
send({"type": "call", "id": 99, "tool": "test.echo", "args": {}})
[sorted(a["id"] for a in answers) == sorted(ids), all(a["value"]["json"]["args"]["of"] == a["id"] for a in answers), receive()["id"]]`,
		Value: "[true,true,99]",
	},
	{
		ID: "F07", Name: "an id that is no number ends the bridge", Status: sandbox.Crashed,
		Python: rawBridge + `
frame(0x81, b'{"type":"call","id":1e400,"tool":"test.echo"}'); time.sleep(30)`,
	},
	{
		ID: "F08", Name: "the socket is no web server", Soft: true,
		Python: attempts + `
import socket
def page(): socket.create_connection(("127.0.0.1", 80), 2)
[attempt(page), [attempt(lambda: socket.create_connection(("127.0.0.1", p), 2)) for p in (8080, 3000, 5173, @PORT@)]]`,
	},
	{
		ID: "F10", Name: "frames that announce more than they are", Status: sandbox.Crashed,
		Python: rawBridge + `
bridge.sendall(bytes((0x81, 0xFF)) + (2**63 - 1).to_bytes(8, "big") + b"\0\0\0\0" + b"x" * 1000); time.sleep(30)`,
	},
	{
		ID: "F10", Name: "one message in fragments without end", Status: sandbox.Crashed,
		Python: rawBridge + `
import sys
try:
    frame(0x01, b'{"type":"call","tool":"')
    while True: frame(0x00, b"x" * 65536)
except OSError: pass
time.sleep(30)`,
	},
	{
		ID: "F10", Name: "answers that nobody reads", Status: sandbox.TimedOut, Limit: func(l *sandbox.Limits) { shortTimeout(l); l.Concurrency = 4 },
		Python: rawBridge + `
for i in range(100): send({"type": "call", "id": i, "tool": "test.echo", "args": {"s": "x" * (1 << 20)}})
time.sleep(60)`,
	},
	{
		ID: "F10", Name: "a flood of pings ends the bridge", Status: sandbox.Crashed,
		Python: rawBridge + `
try:
    while True: frame(0x89, b"x" * 125)
except OSError: pass
time.sleep(30)`,
	},
	{
		ID: "F10", Name: "binary, closing and nonsense", Status: sandbox.Crashed,
		Python: rawBridge + `
frame(0x83, b"x"); time.sleep(30)`,
	},
	{
		ID: "F11", Name: "itself, again",
		Python: rawBridge + `
kinds = []
for name in ("sallyport.execute_code", "gateway.execute_code", "sallyport.run_workflow", "sallyport.search_tools"):
    send({"type": "call", "id": 1, "tool": name, "args": {"code": "1"}}); kinds.append(receive()["type"])
kinds`,
		// The runner's caller answers everything; what the gateway's does is in gateway's own tests. Here no sandbox is started.
		Value: `["result","result","result","result"]`,
	},
	{
		ID: "F10", Name: "descriptors sent over the bridge",
		Python: rawBridge + `
import array
def sent():
    try: bridge.sendmsg([b"\x89\x80\0\0\0\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]); return "sent"
    except OSError as e: return e.errno
sent()
send({"type": "call", "id": 3, "tool": "test.echo", "args": {}})
receive()["id"]`,
		Value: "3",
	},
}
