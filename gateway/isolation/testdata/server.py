"""An MCP server whose tool runs code: what a hostile one can do, a test can have it do."""
import json
import sys


def run(code):
    names = {}
    try:
        exec(code, names)
        return names.get("answer")
    except BaseException as err:
        return f"{type(err).__name__}: {err}"


def respond(request):
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "hostile", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "run", "inputSchema": {"type": "object", "properties": {"code": {"type": "string"}}}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": json.dumps(run(params["arguments"]["code"]))}]}
    return None


def main():
    print("arguments:", sys.argv[1:], file=sys.stderr, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = respond(request)
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if result is None:
            answer["error"] = {"code": -32601, "message": "no such method"}
        else:
            answer["result"] = result
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
