package suite

// large are tasks of many calls, much data and joins.
func large() []*Task { return nil }
