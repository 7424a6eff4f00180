package terminal

import "os"

// Keys sends the bytes that are read from a terminal. The reader ends with the process: a read of a terminal cannot
// be cancelled.
func Keys(tty *os.File) <-chan byte {
	keys := make(chan byte)
	go func() {
		for buf := make([]byte, 1); ; {
			if n, err := tty.Read(buf); n == 0 || err != nil {
				return
			}
			keys <- buf[0]
		}
	}()
	return keys
}
