// Command runsc is gVisor's OCI runtime, unchanged, with two settings that make it start faster: the start of one sandbox runs
// this program seven times.
package main

import (
	"runtime"
	"runtime/debug"

	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/runsc/cli/maincli"
)

func main() {
	delayFirstCollection()
	log.SetLevel(log.Warning) // nobody reads more, unless --debug asks for all of it
	maincli.Main()
}

const (
	// usualPercent is the default of GOGC: a collection when the heap has doubled, and the first one at 4 MiB.
	usualPercent = 100
	// firstPercent begins the first collection at 32 MiB. To restore a sandbox takes less, so most processes end without
	// a collection; otherwise there are several, which take a fifth of the processor time of a restore.
	firstPercent = 8 * usualPercent
)

// delayFirstCollection delays the first garbage collection of this process. Each later one begins when it usually does, so a
// program in the sandbox cannot make gVisor's kernel keep more garbage than usual.
func delayFirstCollection() {
	debug.SetGCPercent(firstPercent)
	runtime.AddCleanup(new([64]byte), func(percent int) { debug.SetGCPercent(percent) }, usualPercent)
}
