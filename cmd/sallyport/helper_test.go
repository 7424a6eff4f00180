package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// check ends a helper that cannot go on.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", err)
		os.Exit(99)
	}
}

// toyServer is an upstream with the tools that its arguments name; each answers
// with its arguments. "die" and "hang" are no tools but what it does instead.
func toyServer() {
	pidFile := filepath.Join(os.Getenv("TMPDIR"), fmt.Sprintf("toy-%d", os.Getpid()))
	check(os.WriteFile(pidFile, nil, 0o600))
	server := mcp.NewServer(&mcp.Implementation{Name: "toy\x1b[31m", Version: "1.0"}, nil)
	for _, name := range os.Args[1:] {
		switch name {
		case "die":
			fmt.Fprintln(os.Stderr, "a line before\n\x1b[31mError: no database\x1b[0m\n    at somewhere")
			os.Exit(7)
		case "locked":
			if os.Getenv("TOY_TOKEN") != "hunter2's-hunter2" {
				os.Exit(7)
			}
		case "hang":
			time.Sleep(time.Hour)
		}
		description := "Answers with what it gets (" + name + "). The rest is more."
		if name == "evil" {
			description = "Answers. \x1b[2J\u202eThe rest is hidden."
		}
		server.AddTool(&mcp.Tool{
			Name:        name,
			Description: description,
			InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"any words"}}}`),
		}, toyAnswer)
	}
	check(server.Run(context.Background(), &mcp.StdioTransport{}))
}

func toyAnswer(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args struct{ Text string }
	if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: "toy got " + args.Text}}, IsError: strings.HasPrefix(args.Text, "bad"),
	}, nil
}

// mcpClient is "mcpclient CALLS command...": it starts the command, makes the
// calls of the file (one {"name", "arguments"} per line) and prints the answers.
func mcpClient() {
	calls, err := os.Open(os.Args[1])
	check(err)
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	begun := time.Now()
	session, err := client.Connect(context.Background(), &mcp.CommandTransport{Command: cmd}, nil)
	check(err)
	list, err := session.ListTools(context.Background(), nil)
	check(err)
	if len(list.Tools) == 0 && time.Since(begun) < 2*time.Second {
		check(errors.New("the list of tools is empty, and did not wait for upstreams"))
	}
	for len(list.Tools) == 0 && time.Since(begun) < time.Minute { // on a busy machine an upstream takes longer to start
		time.Sleep(100 * time.Millisecond)
		list, err = session.ListTools(context.Background(), nil)
		check(err)
	}
	for _, t := range list.Tools {
		fmt.Println("tool", t.Name)
	}
	for lines := bufio.NewScanner(calls); lines.Scan(); {
		var params mcp.CallToolParams
		check(json.Unmarshal(lines.Bytes(), &params))
		result, err := session.CallTool(context.Background(), &params)
		check(err)
		fmt.Printf("-- %s error=%v\n%s\n", params.Name, result.IsError, result.Content[0].(*mcp.TextContent).Text)
	}
	check(session.Close())
	os.Exit(cmd.ProcessState.ExitCode())
}

// hold is "hold SIGNAL TEXT command...": the command runs with an open stdin and
// gets the signal when it has written TEXT to stderr. Its exit status is ours.
func hold() {
	sig := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}[os.Args[1]]
	signal.Notify(make(chan os.Signal, 1), sig) // under nohup the command would be born deaf to it
	cmd := exec.Command(os.Args[3], os.Args[4:]...)
	stdin, err := cmd.StdinPipe()
	check(err)
	defer stdin.Close()
	stderr, err := cmd.StderrPipe()
	check(err)
	cmd.Stdout = os.Stdout
	check(cmd.Start())
	var seen bytes.Buffer
	sent := false
	for buf := make([]byte, 4096); ; {
		n, err := stderr.Read(buf)
		seen.Write(buf[:n])
		if !sent && strings.Contains(seen.String(), os.Args[2]) {
			sent = true
			check(cmd.Process.Signal(sig))
		}
		if err != nil {
			break
		}
	}
	os.Stderr.Write(seen.Bytes())
	os.Exit(exitCode(cmd.Wait()))
}

// brokenPipe is "brokenpipe command...": the command's stdout is a pipe without a reader.
func brokenPipe() {
	r, w, err := os.Pipe()
	check(err)
	check(r.Close())
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	os.Exit(exitCode(cmd.Run()))
}

// withUsedPort is "taken command...": the command gets the address of a port that is ours.
func withUsedPort() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer listener.Close()
	cmd := exec.Command(os.Args[1], append(os.Args[2:], listener.Addr().String())...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	os.Exit(exitCode(cmd.Run()))
}

// withGateway is "beside command...": the command runs while a gateway serves.
func withGateway() {
	serve := exec.Command("sallyport", "serve", "--http", "127.0.0.1:0")
	stderr, err := serve.StderrPipe()
	check(err)
	check(serve.Start())
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.Contains(lines.Text(), "msg=listening") {
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	code := exitCode(cmd.Run())
	check(serve.Process.Signal(syscall.SIGTERM))
	for lines.Scan() {
	}
	check(serve.Wait())
	os.Exit(code)
}

func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if !errors.Is(err, io.EOF) {
		check(err)
	}
	return 0
}
