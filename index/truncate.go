package index

import "slices"

// Truncate truncates the longest of docs, which belong to one upstream, until their text
// has at most most bytes, not counting names and the upstream's description. It keeps
// one upstream from making the index large and slow for all.
func Truncate(docs []*Doc, most int) {
	sizes, sum := make([]int, len(docs)), 0
	for i, d := range docs {
		sizes[i] = d.size()
		sum += sizes[i]
	}
	if sum <= most {
		return
	}
	room := docLimit(sizes, most)
	for _, d := range docs {
		d.truncate(room)
	}
}

// docLimit returns the size limit per document for a total of most: short documents leave room to long ones.
func docLimit(sizes []int, most int) int {
	slices.Sort(sizes)
	for i, size := range sizes {
		if size*(len(sizes)-i) > most {
			return most / (len(sizes) - i)
		}
		most -= size
	}
	return most
}

// size returns the bytes of text of d, without its names and the upstream's description.
func (d *Doc) size() int {
	size := len(d.Title) + len(d.Description) + len(d.Values) + len(d.Results)
	for _, p := range d.Params {
		size += len(p.Name) + len(p.Description)
	}
	return size
}

// truncate keeps room bytes of the text, the most informative fields first.
func (d *Doc) truncate(room int) {
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
