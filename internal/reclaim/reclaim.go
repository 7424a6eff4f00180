// Package reclaim bounds the memory used by copies of large values.
package reclaim

import "runtime"

// large is the length in bytes from which a garbage collection for a dropped copy pays off.
const large = 16 << 20

// Copy runs the garbage collector if size, in bytes, is that of a large value: its caller has dropped a copy of that
// size, and the next one can reuse its memory. Otherwise the collector would start only after the next copy has been
// allocated. It takes some 10 ms, and is safe for concurrent use.
func Copy(size int) {
	if size >= large {
		runtime.GC()
	}
}
