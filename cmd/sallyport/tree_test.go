package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/internal/cli"
)

// newHome is the home of a user with settings and nothing else.
type newHome string

func makeHome(t *testing.T) newHome {
	t.Helper()
	home := newHome(t.TempDir())
	settings := "upstreams:\n  files: {command: files, disabled: true}\n  tickets: {url: 'https://tickets.example/mcp', disabled: true}\n"
	if err := os.WriteFile(home.settings(), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}

func (h newHome) settings() string { return filepath.Join(string(h), "upstreams.yaml") }

func (h newHome) env(name string) (string, bool) {
	switch name {
	case "HOME", "XDG_RUNTIME_DIR":
		return string(h), true
	case "SALLYPORT_CONFIG":
		return h.settings(), true
	case "PATH":
		return os.Getenv("PATH"), true
	}
	return "", false
}

// run runs a command line, which must end in time.
func (h newHome) run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, said bytes.Buffer
	status = run(ctx, args, h.env, strings.NewReader(""), &out, &said)
	if ctx.Err() != nil {
		t.Errorf("%v does not end", args)
	}
	return status, out.String(), said.String()
}

// everyCommand returns all commands but the hidden ones, the root first.
func everyCommand(t *testing.T) []*cobra.Command {
	t.Helper()
	root := newRoot(&app{App: &cli.App{Env: func(string) (string, bool) { return "", false }}})
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ {
		all = append(all, documentedCommands(all[i])...)
	}
	if len(all) < 80 {
		t.Errorf("only %d commands", len(all))
	}
	return all
}

// pathOf returns the words of a command after sallyport.
func pathOf(cmd *cobra.Command) []string { return strings.Fields(cmd.CommandPath())[1:] }

// TestGroups: a command that only groups others prints its help on stderr, and its status is 2. The ones that do something
// without another command say so in their usage.
func TestGroups(t *testing.T) {
	t.Parallel()
	home := makeHome(t)
	for _, cmd := range everyCommand(t) {
		if !cmd.HasSubCommands() {
			continue
		}
		usage := strings.TrimPrefix(cmd.Use, cmd.Name())
		if strings.HasPrefix(usage, " [COMMAND]") {
			continue
		}
		if !strings.HasSuffix(usage, " COMMAND") {
			t.Errorf("%s: the usage %q names no COMMAND", cmd.CommandPath(), cmd.Use)
		}
		status, stdout, stderr := home.run(t, pathOf(cmd)...)
		if status != cli.ExitUsage || stdout != "" || !strings.Contains(stderr, "\nUsage:\n  "+cmd.CommandPath()) {
			t.Errorf("%s: status %d, stdout %q, stderr %q", cmd.CommandPath(), status, stdout, stderr)
		}
		status, stdout, stderr = home.run(t, append(pathOf(cmd), "nonsense")...)
		if status != cli.ExitUsage || stdout != "" || !strings.HasPrefix(stderr, "sallyport: unknown command \"nonsense\"\nhint: ") {
			t.Errorf("%s nonsense: status %d, stdout %q, stderr %q", cmd.CommandPath(), status, stdout, stderr)
		}
	}
}

var (
	optionalWords = regexp.MustCompile(`\[[^\]]*\]`)
	argumentWord  = regexp.MustCompile(`[ \[][A-Z]`)
	usageFault    = regexp.MustCompile(`^sallyport: .*\nhint: .*sallyport .*\n$`)
)

// TestArguments: a command that lacks an argument, or has one too many, does nothing; one line says what it takes, and a
// second one what to run.
func TestArguments(t *testing.T) {
	t.Parallel()
	home := makeHome(t)
	for _, cmd := range everyCommand(t) {
		if cmd.HasSubCommands() {
			continue
		}
		args := pathOf(cmd)
		switch takes := argumentWord.MatchString(cmd.Use); {
		case argumentWord.MatchString(optionalWords.ReplaceAllString(cmd.Use, "")):
		case takes:
			continue
		default:
			args = append(args, "surplus")
		}
		status, stdout, stderr := home.run(t, args...)
		if status != cli.ExitUsage || stdout != "" || !usageFault.MatchString(stderr) {
			t.Errorf("%v: status %d, stdout %q, stderr %q", args, status, stdout, stderr)
		}
	}
}

// jsonLists are the commands that print a list, with the member that has it in the object that --json prints.
func jsonLists() map[string]string {
	return map[string]string{
		"alerts test": "alerts", "approvals": "approvals", "approvals list": "approvals", "auth status": "logins", "budgets": "budgets", "config check": "warnings", "doctor": "checks", "environments list": "environments",
		"environments prune": "removed", "executions": "executions", "example list": "examples", "executions list": "executions", "import": "servers", "log sinks": "sinks", "policy test": "tests", "search": "tools",
		"skills list": "skills", "skills review": "skills", "token list": "tokens", "tools": "tools", "upstreams list": "upstreams",
		"upstreams review": "held", "upstreams test": "upstreams", "workflow lint": "findings", "workflow list": "workflows", "workflow runs": "runs",
		"workflow test": "tests",
	}
}

// listWords begin the short help of commands that print what there is.
var listWords = regexp.MustCompile(`^(list|show|find|see|check|say|run the tests) `)

// withoutJSON are the commands of that kind whose output is a file, a part of the settings, a page, or a group of commands.
var withoutJSON = []string{"config", "environments", "skills", "upstreams profile"}

// TestJSON: every command that prints what there is has --json. It prints one object, with a list as a member, which is there
// when it is empty too; records that follow one another are an object to a line.
func TestJSON(t *testing.T) {
	t.Parallel()
	home := makeHome(t)
	if err := os.WriteFile(filepath.Join(string(home), ".claude.json"), []byte(`{"mcpServers": {"files": {"command": "files"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	lists := jsonLists()
	for _, cmd := range everyCommand(t) {
		path := strings.Join(pathOf(cmd), " ")
		flag := cmd.Flag("json")
		member, isList := lists[path]
		delete(lists, path)
		switch {
		case flag == nil && isList, flag == nil && listWords.MatchString(cmd.Short) && !slices.Contains(withoutJSON, path):
			t.Errorf("%s has no --json", path)
		case flag != nil && !strings.Contains(flag.Usage, "JSON object"):
			t.Errorf("%s --json: %s", path, flag.Usage)
		case flag != nil && isList:
			home.wantList(t, member, append(pathOf(cmd), "--json"))
		}
	}
	for path := range lists {
		t.Errorf("there is no command %s", path)
	}
}

// TestCompletion: a shell is offered what an argument can be, from local data. No upstream is started for that, and nothing is said.
func TestCompletion(t *testing.T) {
	t.Parallel()
	home := makeHome(t)
	started := filepath.Join(string(home), "started")
	settings := "upstreams:\n  files: {command: touch, args: ['" + started + "'], eager: true}\nworkspaces: {app: {path: app}}\nenvironments: {data: {python: {requirements: [six]}}}\n"
	if err := os.WriteFile(home.settings(), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range everyCommand(t) {
		lines := map[string]string{"": ""} // what is before the cursor, and how the offer begins
		for flag, offer := range map[string]string{"upstream": "files\n", "environment": "data\n", "workspace": "app\n", "execution": ":", "tool": ":"} {
			if cmd.Flags().Lookup(flag) != nil {
				lines["--"+flag] = offer
			}
		}
		for flag, want := range lines {
			line := append(pathOf(cmd), strings.Fields(flag)...)
			line = append(line, "")
			status, stdout, stderr := home.run(t, append([]string{"__complete"}, line...)...)
			if status != 0 || !strings.Contains(stdout, "\n:") && !strings.HasPrefix(stdout, ":") || strings.Contains(stderr, "sallyport:") {
				t.Errorf("%v: status %d, %q, %q", line, status, stdout, stderr)
			}
			if !strings.HasPrefix(stdout, want) {
				t.Errorf("%v offers %q", line, stdout)
			}
		}
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("an upstream was started")
	}
}

// wantList checks that a command line prints an object with a list as the member.
func (h newHome) wantList(t *testing.T, member string, args []string) {
	t.Helper()
	_, stdout, stderr := h.run(t, args...)
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Errorf("%v: %v in %q; stderr %q", args, err, stdout, stderr)
	} else if list := got[member]; len(list) == 0 || list[0] != '[' {
		t.Errorf("%v: the member %s is %q in %s", args, member, list, stdout)
	}
}
