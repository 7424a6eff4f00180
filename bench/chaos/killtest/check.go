package killtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// check ends the gateways, and checks what they and the upstreams have left.
func (c *campaign) check(ctx context.Context, gateways []*gateway) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, g := range gateways {
		if err := g.stop(); err != nil {
			c.problem("%v", err)
		}
	}
	if err := c.checkJobs(); err != nil {
		return err
	}
	for _, g := range gateways {
		if out, err := g.output("log", "verify"); err != nil {
			c.problem("log verify: %v: %s", err, out)
		}
	}
	return nil
}

// checkJobs compares all jobs with what was done.
func (c *campaign) checkJobs() error {
	time.Sleep(3 * maxDelay) // an upstream does what it had begun
	done, err := c.ledger.counts()
	if err != nil {
		return err
	}
	for _, o := range c.jobs {
		c.checkJob(o, done)
	}
	return nil
}

// checkJob compares what the client was told about a job with what was done.
func (c *campaign) checkJob(o *outcome, done map[string]int) {
	c.report.Jobs++
	if o.status == "ok" {
		c.report.Completed++
	} else {
		c.report.Failed++
		if !o.denied {
			c.problem("%s %s %s ended with %q", o.id, o.language, o.workflow, o.status)
		}
	}
	for _, k := range o.calls {
		n := done[k.tool+" "+k.id]
		if k.tool == "pay" {
			c.report.Calls++
			if n > 1 {
				c.report.Doubles++
				c.problem("%s %s %s: %s was paid %d times", o.id, o.language, o.workflow, k.id, n)
			}
		}
		if n == 0 && o.status == "ok" {
			c.problem("%s %s %s: completed without %s of %s", o.id, o.language, o.workflow, k.tool, k.id)
		}
	}
}

// leftTime is how long what a gateway has left may take to end.
const leftTime = time.Minute

// checkLeft looks for processes, mounts and sockets of the gateways, and for what other functions find.
func (c *campaign) checkLeft(others ...func() []string) {
	var left []string
	for end := time.Now().Add(leftTime); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		left = c.left()
		for _, find := range others {
			left = append(left, find()...)
		}
		if len(left) == 0 {
			return
		}
	}
	c.problem("left behind: %s", strings.Join(left, ", "))
}

func (c *campaign) left() (left []string) {
	self := fmt.Sprintf("/proc/%d/", os.Getpid())
	for _, file := range []string{"environ", "cmdline"} {
		paths, _ := filepath.Glob("/proc/[0-9]*/" + file) // the pattern is valid
		for _, path := range paths {
			if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), c.dir) && !strings.HasPrefix(path, self) {
				left = append(left, path)
			}
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // other systems have none
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, c.dir) {
			left = append(left, strings.TrimSpace(line))
		}
	}
	_ = filepath.WalkDir(c.dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type()&os.ModeSocket != 0 {
			left = append(left, path)
		}
		return nil
	})
	return left
}
