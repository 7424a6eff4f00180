package report

import (
	"fmt"

	"sallyport/bench/suite"
)

// Plots are the pictures of the page, by name of file.
func (r *Results) Plots() map[string]string {
	plots := map[string]string{"tokens.svg": r.overTools()}
	if sizes := r.shared(); len(sizes) > 0 {
		plots["tasks.svg"] = r.overTasks(sizes[0].Servers) // the smallest, at which code mode has the least to save
	}
	return plots
}

// overTools has two panels: the median of all tasks over the number of tools, without a cache and with one.
func (r *Results) overTools() string {
	s := newSVG(860, 400, "Tokens of the median task over the number of tools, in three modes, without and with prompt caching")
	var ys, xs []float64
	for _, size := range r.shared() {
		xs = append(xs, float64(size.Tools))
		for _, mode := range suite.Modes() {
			ys = append(ys, r.median(string(mode), size.Servers, Encoding, plain()), r.median(string(mode), size.Servers, Encoding, cached()))
		}
	}
	s.text(20, 24, "start", `font-size="15" font-weight="600"`, "Tokens of the median task, read and written, over the number of tools")
	y := around(ys, 330, 80)
	for i, w := range []weighing{plain(), cached()} {
		left := 70 + float64(i)*410
		r.panel(s, around(xs, left, left+355), y, w)
	}
	legend(s, 70, 385)
	return s.String()
}

// shared are the sizes at which all tasks are asked.
func (r *Results) shared() (list []Size) {
	for _, s := range r.Sizes {
		if s.Servers > 1 {
			list = append(list, s)
		}
	}
	return list
}

func (r *Results) panel(s *svg, x, y scale, w weighing) {
	s.text(x.from, 64, "start", `font-weight="600"`, w.name)
	grid(s, x, y)
	s.text((x.from+x.to)/2, y.from+34, "middle", "", "tools")
	for _, mode := range suite.Modes() {
		var points [][2]float64
		var fits []bool
		for _, size := range r.shared() {
			if m := r.median(string(mode), size.Servers, Encoding, w); m > 0 {
				points = append(points, [2]float64{x.at(float64(size.Tools)), y.at(m)})
				fits = append(fits, r.fits(string(mode), size.Servers))
			}
		}
		s.path(points, colorOf(string(mode)), "")
		for i, p := range points {
			s.mark(p[0], p[1], string(mode), !fits[i])
		}
	}
}

// fits reports whether most tasks of a size have contexts that fit a window.
func (r *Results) fits(mode string, servers int) bool {
	names, of, _ := r.tooLarge(mode, servers, Encoding)
	return 2*len(names) < of
}

func grid(s *svg, x, y scale) {
	for _, v := range y.decades() {
		s.line(x.from, y.at(v), x.to, y.at(v), "#d0d7de", "")
		s.text(x.from-8, y.at(v)+4, "end", "", short(v))
	}
	for _, v := range x.decades() {
		s.line(x.at(v), y.from, x.at(v), y.to, "#d0d7de", "")
		s.text(x.at(v), y.from+17, "middle", "", short(v))
	}
}

func legend(s *svg, x, y float64) {
	for _, mode := range suite.Modes() {
		s.mark(x, y-4, string(mode), false)
		s.text(x+12, y, "start", "", nameOf(string(mode)))
		x += 110
	}
	s.mark(x, y-4, direct, true)
	s.text(x+12, y, "start", "", fmt.Sprintf("hollow: a context of more than %s tokens", number(Window)))
}

// overTasks has a row for each task, with a mark for each mode.
func (r *Results) overTasks(servers int) string {
	tasks := r.tasks(servers)
	const top, left, right, step = 76, 190, 830, 22
	bottom := float64(top + step*len(tasks))
	s := newSVG(860, bottom+70, fmt.Sprintf("Tokens of each task with %s, in three modes", count(servers, "server")))
	s.text(20, 24, "start", `font-size="15" font-weight="600"`, fmt.Sprintf("Tokens of each task with %s and %s tools, read and written, without a cache", count(servers, "server"), number(r.size(servers).Tools)))
	legend(s, 30, 50)
	x := around(r.all(tasks, servers), left, right)
	for _, v := range x.decades() {
		s.line(x.at(v), top-8, x.at(v), bottom, "#d0d7de", "")
		s.text(x.at(v), bottom+18, "middle", "", short(v))
	}
	s.text((left+right)/2, bottom+40, "middle", "", "tokens")
	for i, task := range tasks {
		y := float64(top + step*i + step/2)
		s.text(left-12, y+4, "end", "", task)
		r.rowOf(s, x, y, task, servers)
	}
	return s.String()
}

func (r *Results) all(tasks []string, servers int) (values []float64) {
	for _, task := range tasks {
		for _, mode := range suite.Modes() {
			if l := r.of(task, string(mode), servers, Encoding); l != nil {
				values = append(values, float64(l.Total()))
			}
		}
	}
	return values
}

func (r *Results) rowOf(s *svg, x scale, y float64, task string, servers int) {
	s.line(x.from, y, x.to, y, "#eaeef2", "")
	for _, mode := range suite.Modes() {
		if l := r.of(task, string(mode), servers, Encoding); l != nil && l.Correct {
			s.mark(x.at(float64(l.Total())), y, string(mode), !l.Valid())
		}
	}
}
