package index

import "slices"

// Fit cuts the longest of docs, which belong to one upstream, until together they
// have at most so many bytes of text besides names and what is said of the upstream:
// what one upstream lists must not make everybody's index large and slow.
func Fit(docs []*Doc, most int) {
	sizes, sum := make([]int, len(docs)), 0
	for i, d := range docs {
		sizes[i] = d.size()
		sum += sizes[i]
	}
	if sum <= most {
		return
	}
	room := level(sizes, most)
	for _, d := range docs {
		d.cut(room)
	}
}

// level returns how much each may have for all to have most: short ones leave room to long ones.
func level(sizes []int, most int) int {
	slices.Sort(sizes)
	for i, size := range sizes {
		if size*(len(sizes)-i) > most {
			return most / (len(sizes) - i)
		}
		most -= size
	}
	return most
}

// size is how much text d has, without its names and what is said of the upstream.
func (d *Doc) size() int {
	size := len(d.Title) + len(d.Description) + len(d.Values) + len(d.Results)
	for _, p := range d.Params {
		size += len(p.Name) + len(p.Description)
	}
	return size
}

// cut leaves the first room bytes of the text, what tells most first.
func (d *Doc) cut(room int) {
	take := func(text *string) {
		*text = cutText(*text, room)
		room = max(0, room-len(*text))
	}
	take(&d.Title)
	take(&d.Description)
	d.Params = slices.Clone(d.Params)
	for i := range d.Params {
		if take(&d.Params[i].Name); d.Params[i].Name == "" {
			d.Params = d.Params[:i]
			break
		}
		take(&d.Params[i].Description)
	}
	take(&d.Values)
	take(&d.Results)
}
