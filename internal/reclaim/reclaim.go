// Package reclaim bounds the memory that large values take on their way.
package reclaim

import "runtime"

// large is the length in bytes from which it is worth a collection to have a copy of a value freed.
const large = 16 << 20

// Copy runs the garbage collector if size, in bytes, is that of a large value: its caller has
// dropped a copy of that size, and the next one can take its place. The collector by itself starts
// when the next copy has been allocated already. It takes some 10 ms, and is safe for concurrent use.
func Copy(size int) {
	if size >= large {
		runtime.GC()
	}
}
