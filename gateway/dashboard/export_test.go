package dashboard

// Operations returns the method and the path of each page, and its name in the table of roles.
func (d *Dashboard) Operations() (all [][3]string) {
	for _, p := range d.pages {
		all = append(all, [3]string{p.method, p.path, p.operation()})
	}
	return all
}
