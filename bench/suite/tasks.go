package suite

// Tasks are all tasks, from what code mode should lose to what it should win.
func Tasks() []*Task {
	var all []*Task
	for _, some := range [][]*Task{small(), large()} {
		all = append(all, some...)
	}
	return all
}
