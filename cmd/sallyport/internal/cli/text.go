package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// Plural returns a number with the noun that it counts.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// OneLine is a text that fits in a line, "" for none.
func OneLine(text string, most int) string {
	if text == "" {
		return ""
	}
	return Cell(text, most)
}

// OneName refuses all arguments but one name.
func OneName(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return Misuse(cmd, "%s takes one NAME", cmd.Name())
	}
	return nil
}

// LastLines is the end of what a process wrote: enough to see what it died of.
func LastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(Clean(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// Remedy turns the reason of a failed connection into what to do about it.
func Remedy(why string) string {
	if command := loginCommand.FindString(why); command != "" {
		return "run `" + command + "`"
	}
	for _, r := range []struct{ sign, fix string }{
		{"check client_id", "correct client_id and client_secret under auth in upstreams.yaml"},
		{"the variable ", "set it where sallyport is started, or write it into the file that env_file in upstreams.yaml names"},
		{"the keyring has no ", "put it there with `sallyport auth set NAME`"},
		{"keyring", "use ${VARIABLE} or ${file:PATH} in upstreams.yaml where there is no keyring"},
		{"cannot be used: ", "correct the path of ${file:PATH} in upstreams.yaml, or who may read it; it starts at that file"},
		{"executable file not found", "install its command, or write its full path in upstreams.yaml"},
		{"permission denied", "make its command executable (chmod +x), or start it through its interpreter"},
		{"no such file or directory", "correct its command or cwd in upstreams.yaml; relative paths start at that file"},
		{"Cannot find module", "correct its args or cwd in upstreams.yaml, or install the module (make upstreams for those of the demo)"},
		{"no answer within", "see that its command speaks MCP on stdout and starts in time; npx and uvx download first, so run it once by hand"},
		{"HTTP 401", "give it valid credentials under headers in upstreams.yaml"},
		{"HTTP 403", "give it credentials that may do this under headers in upstreams.yaml"},
		{"HTTP 404", "correct its url in upstreams.yaml; many end in /mcp"},
		{"connection refused", "start the server, or correct its url in upstreams.yaml"},
		{"no such host", "correct its url in upstreams.yaml, or the machine's DNS"},
		{"certificate", "install the server's certificate authority on this machine"},
		{"; stderr: ", "mend what its stderr says: often its args, cwd or env in upstreams.yaml"},
		{"exited with status 0", "run its command by hand; it must speak MCP on stdin and stdout (many need an argument such as stdio)"},
		{"closed its output", "run its command by hand; it must speak MCP on stdin and stdout (many need an argument such as stdio)"},
	} {
		if strings.Contains(why, r.sign) {
			return r.fix
		}
	}
	return "try its command or url by hand, or set disabled: true"
}

// loginCommand is what the reason of an upstream says that wants a login.
var loginCommand = regexp.MustCompile("sallyport auth login [^`)]+")

// OrDash returns a number as it stands in a table, where 0 is "-".
func OrDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
