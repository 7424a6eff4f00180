package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"sallyport/gateway/trust"
	"sallyport/internal/config"
	"sallyport/internal/tool"
)

// checkTools does to the lock file in this directory what a gateway does when an
// upstream lists its tools: checktools UPSTREAM FILE. It prints what is held.
func checkTools() {
	dir, err := os.Getwd()
	check(err)
	book, err := trust.OpenForConfig(&config.Config{Dir: dir}, filepath.Join(os.Getenv("XDG_CACHE_HOME"), "sallyport"), nil, nil)
	check(err)
	data, err := os.ReadFile(os.Args[2])
	check(err)
	var list []struct {
		Name, Description string
		InputSchema       json.RawMessage
	}
	check(json.Unmarshal(data, &list))
	var tools []tool.Tool
	for _, t := range list {
		tools = append(tools, tool.Tool{ID: tool.ID{Upstream: tool.Identifier(os.Args[1]), Name: tool.Identifier(t.Name)}, Wire: t.Name, Description: t.Description, Input: t.InputSchema})
	}
	held, err := book.Check(os.Args[1], config.TrustPin, tools)
	check(err)
	for _, h := range held {
		fmt.Fprintln(os.Stdout, h.Name, h.Reason)
	}
}
