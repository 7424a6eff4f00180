// Command server is an MCP server for an image without anything else. Its tools do what a test asks for, and say what they saw.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
)

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Arguments struct{ Text string } `json:"arguments"`
		Name      string                `json:"name"`
	} `json:"params"`
}

func main() {
	fmt.Fprintln(os.Stderr, "banner:", strings.Join(os.Args, " "))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r request
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.ID == nil {
			continue
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": r.ID}
		if result := respond(r); result != nil {
			answer["result"] = result
		} else {
			answer["error"] = map[string]any{"code": -32601, "message": "no such method"}
		}
		_ = json.NewEncoder(os.Stdout).Encode(answer)
	}
}

func respond(r request) any {
	type object = map[string]any
	switch r.Method {
	case "initialize":
		return object{"protocolVersion": "2025-06-18", "capabilities": object{"tools": object{}}, "serverInfo": object{"name": "image", "version": "1"}}
	case "tools/list":
		var tools []object
		for _, name := range []string{"about", "read", "write", "dial"} {
			tools = append(tools, object{"name": name, "inputSchema": object{"type": "object", "properties": object{"text": object{"type": "string"}}}})
		}
		return object{"tools": tools}
	case "tools/call":
		return object{"content": []object{{"type": "text", "text": call(r.Params.Name, r.Params.Arguments.Text)}}}
	}
	return nil
}

func call(name, text string) string {
	var err error
	switch name {
	case "about":
		cwd, _ := os.Getwd()
		return fmt.Sprint(os.Args, " ", cwd, " ", os.Getuid(), ":", os.Getgid(), " ", os.ExpandEnv(text))
	case "read":
		var data []byte
		if data, err = os.ReadFile(text); err == nil {
			return string(data)
		}
	case "write":
		if err = os.WriteFile(text, []byte("x"), 0o600); err == nil {
			return "written"
		}
	case "dial":
		var conn net.Conn
		if conn, err = net.DialTimeout("tcp", text, 5*time.Second); err == nil {
			return "connected to " + conn.RemoteAddr().String()
		}
	}
	return "error: " + err.Error()
}
