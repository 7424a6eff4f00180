//go:build linux

package isolation_test

import (
	"encoding/json"
	"testing"

	"sallyport/gateway/isolation"
	"sallyport/internal/testutil"
	"sallyport/sandbox/sandboxtest"
)

// lastValue runs a program, and keeps the value of its last expression as a server's answer.
const lastValue = `
import ast, json, os
os.makedirs("/tmp/work", exist_ok=True)
tree = ast.parse(json.loads(CODE))
if isinstance(tree.body[-1], ast.Expr):
    tree.body[-1] = ast.Assign([ast.Name("answer", ast.Store())], tree.body[-1].value)
exec(compile(ast.fix_missing_locations(tree), "attack", "exec"), globals())
`

// TestAttacks has a hostile server try what hostile programs try: on the files and sockets of the host, on gVisor's kernel, and on the
// network.
func TestAttacks(t *testing.T) {
	testutil.TAP(t)
	r := sandboxtest.NewTestbed(t, testutil.ShortDir(t))
	s := open(t, launcherWith(t, isolation.Options{}), parse(t, hostile(t, "  hosts: [api.example.com]")))
	sandboxtest.AttackFromProcess(t, r, "/tmp/work", func(t *testing.T, code string) any {
		t.Helper()
		text, _ := json.Marshal(code)
		quoted, _ := json.Marshal(string(text))
		return run(t, s, "CODE = "+string(quoted)+lastValue)
	})
}
