package suite

// manyCalls are tasks with a loop.
func manyCalls() []*Task { return nil }
