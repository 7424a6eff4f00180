package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// chaos is one campaign.
type chaos struct {
	binary, dir, effects string
	rand                 *rand.Rand
	counts               counts
}

func (c *chaos) settings() string { return filepath.Join(c.dir, "upstreams.yaml") }
func (c *chaos) data() string     { return filepath.Join(c.dir, "data") }

// program is one that calls the tool once; changed ones spell the call otherwise, or catch its failure.
func (c *chaos) program(key string, changed bool) (code, language string) {
	if c.rand.IntN(2) == 0 {
		code, language = fmt.Sprintf("from servers.crm import inc\nprint(inc(key=%q))\n", key), "python"
		if changed {
			code = fmt.Sprintf("from servers.crm import inc\nk = %q\nprint('again', inc(**{'key': k}))\n", key)
		}
		return code, language
	}
	code, language = fmt.Sprintf("import { inc } from 'servers/crm';\nconsole.log(await inc({ key: %q }));\n", key), "typescript"
	if changed {
		code = fmt.Sprintf("import { inc } from 'servers/crm';\nconst key = %q;\nconsole.log('again', await inc({ key }));\n", key)
	}
	return code, language
}

// maxResumes is how often a program is resumed.
const maxResumes = 4

// round runs one program, kills its gateway, and resumes it until it has ended well or was resumed often enough.
func (c *chaos) round(ctx context.Context) (line string, err error) {
	c.counts.rounds++
	key := fmt.Sprintf("K%d", c.counts.rounds)
	code, language := c.program(key, false)
	arguments := map[string]any{"code": code, "language": language}
	told, approved := []string{key, language}, 0
	for attempt := range maxResumes + 1 {
		said, killed, err := c.execute(ctx, arguments, key, attempt == 0 || c.rand.IntN(3) == 0)
		if err != nil {
			return "", err
		}
		if killed {
			said = "killed"
		}
		told = append(told, head(said))
		if !killed && !strings.HasPrefix(said, "held") && !strings.Contains(said, "ToolError") {
			break
		}
		answer, err := c.answer(ctx, said)
		if err != nil {
			return "", err
		}
		if told = append(told, answer); answer == "approve" {
			approved++
		}
		arguments = map[string]any{"code": "", "resume": "last"}
		if c.rand.IntN(4) == 0 {
			changed, other := c.program(key, true)
			arguments = map[string]any{"code": changed, "language": other, "resume": "last"}
		}
	}
	done, err := c.done(key)
	if err != nil {
		return "", err
	}
	line = fmt.Sprintf("%s: done %d, approved %d", strings.Join(told, " | "), done, approved)
	if done > 1+approved {
		c.counts.doubles++
		line = "DOUBLE " + line
	}
	return line, nil
}

func head(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), 90)]
}

// execute runs a program in a gateway of its own, which is killed some time after the program was sent, where that is wanted.
func (c *chaos) execute(ctx context.Context, arguments map[string]any, key string, kill bool) (said string, killed bool, err error) {
	cmd := exec.CommandContext(ctx, c.binary, "serve", "--config", c.settings(), "--data", c.data(), "--log-level", "error")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "chaos", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		return "", false, err
	}
	before, err := c.seen(key)
	if err != nil {
		return "", false, err
	}
	ended := make(chan struct{})
	var result *mcp.CallToolResult
	var failed error
	go func() {
		defer close(ended)
		result, failed = session.CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: arguments})
	}()
	if kill {
		c.wait(key, before, ended)
		killed = cmd.Process.Kill() == nil
		c.counts.kills++
	}
	<-ended
	err = session.Close()
	switch {
	case killed:
		time.Sleep(2 * slow) // the upstream does what it had begun
		return "", true, nil
	case failed != nil:
		return "", false, failed
	}
	if text, ok := result.Content[0].(*mcp.TextContent); ok {
		said = text.Text
	}
	return said, false, err
}

// wait waits until the upstream has been called, mostly, and then for some time by chance.
func (c *chaos) wait(key string, before int, ended <-chan struct{}) {
	if c.rand.IntN(8) > 0 {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
			if now, err := c.seen(key); err != nil || now > before {
				break
			}
			select {
			case <-ended:
				return
			default:
			}
		}
	}
	select {
	case <-ended:
	case <-time.After(time.Duration(c.rand.Int64N(int64(5 * slow / 2)))):
	}
}

var approvalID = regexp.MustCompile(`\ba-[a-z0-9]{20,}\b`)

// answer has a person say something about a program that is held, or nothing.
func (c *chaos) answer(ctx context.Context, said string) (string, error) {
	id := approvalID.FindString(said)
	if id == "" {
		return "", nil
	}
	c.counts.held++
	answer := []string{"", "approve", "deny", "done"}[c.rand.IntN(4)]
	if answer == "" {
		return "no answer", nil
	}
	cmd := exec.CommandContext(ctx, c.binary, "approvals", answer, id, "--config", c.settings(), "--data", c.data())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", answer, err, out)
	}
	switch answer {
	case "approve":
		c.counts.approved++
	case "deny":
		c.counts.denied++
	case "done":
		c.counts.done++
	}
	return answer, nil
}

// seen is how often the upstream was called with a key, done how often it did what it is for.
func (c *chaos) seen(key string) (int, error) { return c.lines("begin " + key) }
func (c *chaos) done(key string) (int, error) { return c.lines("done " + key) }

func (c *chaos) lines(want string) (n int, err error) {
	data, err := os.ReadFile(c.effects)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	for line := range strings.Lines(string(data)) {
		if strings.TrimSpace(line) == want {
			n++
		}
	}
	return n, err
}
