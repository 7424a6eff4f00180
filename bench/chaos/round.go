//go:build unix

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
	"time"
)

// chaos is one campaign.
type chaos struct {
	binary, dir, effects string
	rand                 *rand.Rand
	counts               counts
}

func (c *chaos) settings() string { return filepath.Join(c.dir, "upstreams.yaml") }
func (c *chaos) data() string     { return filepath.Join(c.dir, "data") }

// command is a verb of the binary, on the settings and data of the campaign.
func (c *chaos) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, c.binary, append(args, "--config", c.settings(), "--data", c.data())...)
}

// attempt is how one try at a call ended.
type attempt struct {
	output   string
	killed   bool
	ended    bool // no further try would do anything
	approved int  // times that a person approved the call during it
}

// scenario calls the tool in one round: the first try starts something, the others resume it.
type scenario interface {
	try(ctx context.Context, first, kill bool) (attempt, error)
}

// maxResumes is how often a program is resumed.
const maxResumes = 4

// round calls the tool once, kills the gateway that does it, and resumes until it has ended or was resumed often enough.
func (c *chaos) round(ctx context.Context) (line string, err error) {
	c.counts.rounds++
	key := fmt.Sprintf("K%d", c.counts.rounds)
	w, name := c.newScenario(key)
	told, approved := []string{key, name}, 0
	for n := range maxResumes + 1 {
		a, err := w.try(ctx, n == 0, n == 0 || c.rand.IntN(3) == 0)
		if err != nil {
			return "", err
		}
		approved += a.approved
		if a.killed {
			a.output = "killed"
		}
		told = append(told, head(a.output))
		if a.ended {
			break
		}
		answer, err := c.answer(ctx, a.output)
		if err != nil {
			return "", err
		}
		if told = append(told, answer); answer == "approve" {
			approved++
		}
	}
	done, err := c.doneCount(key)
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

func (c *chaos) newScenario(key string) (w scenario, name string) {
	switch c.rand.IntN(8) {
	case 0, 1:
		return &run{chaos: c, key: key, workflow: "tool_step"}, "a tool step"
	case 2:
		return &run{chaos: c, key: key, workflow: "python_step"}, "a step in Python"
	case 3:
		return &run{chaos: c, key: key, workflow: "typescript_step"}, "a step in TypeScript"
	case 4, 5:
		return &program{chaos: c, key: key, elicits: true}, "a program with a client that is asked"
	}
	return &program{chaos: c, key: key}, "a program"
}

func head(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return text[:min(len(text), 90)]
}

// wait waits until the upstream has been called, mostly, and then for some time by chance.
func (c *chaos) wait(key string, before int, ended <-chan struct{}) {
	if c.rand.IntN(8) > 0 {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
			if now, err := c.callCount(key); err != nil || now > before {
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
	case <-time.After(time.Duration(c.rand.Int64N(int64(5 * upstreamDelay / 2)))):
	}
}

// runAndKill runs work in a process, and kills it after a random time if kill is set.
func (c *chaos) runAndKill(key string, kill bool, process func() *os.Process, work func()) (killed bool, err error) {
	before, err := c.callCount(key)
	if err != nil {
		return false, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		work()
	}()
	if kill {
		c.wait(key, before, ended)
		killed = process().Kill() == nil
		c.counts.kills++
	}
	<-ended
	if killed {
		time.Sleep(2 * upstreamDelay) // the upstream does what it had begun
	}
	return killed, nil
}

var approvalID = regexp.MustCompile(`\ba-[a-z0-9]{20,}\b`)

// answer makes a person decide about a held program, or not.
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
	if out, err := c.command(ctx, "approvals", answer, id).CombinedOutput(); err != nil {
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

// callCount returns how often the upstream was called with a key, done how often it completed the call.
func (c *chaos) callCount(key string) (int, error) { return c.lines("begin " + key) }
func (c *chaos) doneCount(key string) (int, error) { return c.lines("done " + key) }

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
