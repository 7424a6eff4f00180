package spec

// lines finds its way around in a definition's text.
type lines struct{}

// place is where a text stands, in more detail than its Pos: how it is quoted, and what follows.
type place struct{}

func (p place) at(start Pos, _ int) Pos { return start }
