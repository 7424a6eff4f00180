package catalog

import (
	"regexp"
	"strings"
)

// Remedy returns what to do about a failed connection, by its error text.
func Remedy(why string) string {
	if command := loginCommand.FindString(why); command != "" {
		return "run `" + command + "`"
	}
	for _, r := range []struct{ sign, fix string }{
		{"with a token to exchange", "use it once as a person who signs in at that identity provider"},
		{"check client_id", "correct client_id and client_secret under auth in upstreams.yaml"},
		{"the variable ", "set it where sallyport is started, or write it into the file that env_file in upstreams.yaml names"},
		{"the keyring has no ", "put it there with `sallyport auth set NAME`"},
		{"keyring", "use ${VARIABLE} or ${file:PATH} in upstreams.yaml where there is no keyring"},
		{"cannot be used: ", "correct the path of ${file:PATH} in upstreams.yaml, or who may read it; it starts at that file"},
		{"its cwd ", "correct its cwd in upstreams.yaml; relative paths start at that file"},
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
		{"; stderr: ", "fix what its stderr says: often its args, cwd or env in upstreams.yaml"},
		{"exited with status 0", "run its command by hand; it must speak MCP on stdin and stdout (many need an argument such as stdio)"},
		{"closed its output", "run its command by hand; it must speak MCP on stdin and stdout (many need an argument such as stdio)"},
	} {
		if strings.Contains(why, r.sign) {
			return r.fix
		}
	}
	return "try its command or url by hand, or set disabled: true"
}

// loginCommand matches the login command in the error of an upstream that needs a login.
var loginCommand = regexp.MustCompile("sallyport auth login [^`)]+")
