package sandbox

// Platform is nil where sandboxes can run, and else says why they cannot and what to do.
func Platform() error { return nil }
