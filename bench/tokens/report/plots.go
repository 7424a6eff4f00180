package report

import (
	"fmt"
	"slices"

	"sallyport/bench/suite"
)

// picture is a plot of the page.
type picture struct{ name, about, svg string }

// Plots are the pictures of the page, by name of file.
func (r *Results) Plots() map[string]string {
	plots := map[string]string{}
	for _, p := range (drawing{r}).pictures() {
		plots[p.name] = p.svg
	}
	return plots
}

// drawing draws the results.
type drawing struct{ *Results }

// pictures has the tasks with one server, at which code mode has the least to save, and with the five that all of them have.
func (r drawing) pictures() []picture {
	list := []picture{{"tokens.svg", "Tokens of a task over the number of tools", r.overTools()}}
	for _, of := range []struct {
		name    string
		servers int
	}{{"tasks-1.svg", 1}, {"tasks.svg", 5}} {
		if slices.Contains(r.sizes(), of.servers) {
			list = append(list, picture{of.name, "Tokens of each task with " + count(of.servers, "server"), r.overTasks(of.servers)})
		}
	}
	return list
}

// overTools has three panels: the median over the number of tools, without a cache, with one, and with one that is
// warm, which favours direct calls the most. It is of the tasks that are asked at every size.
func (r drawing) overTools() string {
	s := newSVG(860, 420, "Tokens of the median task over the number of tools, in three modes, without and with prompt caching")
	var ys, xs []float64
	panels := []weighing{plain(), cacheWeighing(), warm()}
	for _, size := range r.Sizes {
		xs = append(xs, r.toolsAt(size.Servers))
		for _, mode := range suite.Modes() {
			for _, w := range panels {
				ys = append(ys, r.median(string(mode), size.Servers, Encoding, w))
			}
		}
	}
	s.text(20, 24, "start", `font-size="15" font-weight="600"`, "Tokens of the median task, read and written, over the number of tools")
	s.text(20, 42, "start", "", fmt.Sprintf("Over the %s that are asked at every size: %s servers", count(len(r.commonTasks(Encoding)), "task"), numbers(r.sizes())))
	y := around(ys, 350, 96)
	for i, w := range panels {
		left := 56 + float64(i)*272
		r.panel(s, around(xs, left, left+232), y, w)
	}
	legend(s, 56, 407)
	return s.String()
}

// toolsAt is how many tools are there at one size, on the mean of the tasks of the plot: with one server it depends on the task.
func (r drawing) toolsAt(servers int) float64 {
	sum, tasks := 0, r.commonTasks(Encoding)
	for _, task := range tasks {
		sum += r.of(task, direct, servers, Encoding).Tools
	}
	return float64(sum) / float64(max(1, len(tasks)))
}

// sharedSizes returns the sizes at which all tasks are played.
func (r drawing) sharedSizes() (list []Size) {
	for _, s := range r.Sizes {
		if s.Servers > 1 {
			list = append(list, s)
		}
	}
	return list
}

func (r drawing) panel(s *svg, x, y scale, w weighing) {
	s.text(x.from, 80, "start", `font-weight="600"`, w.name)
	grid(s, x, y)
	s.text((x.from+x.to)/2, y.from+34, "middle", "", "tools")
	for _, mode := range suite.Modes() {
		var points [][2]float64
		var fits []bool
		for _, size := range r.Sizes {
			if m := r.median(string(mode), size.Servers, Encoding, w); m > 0 {
				points = append(points, [2]float64{x.at(r.toolsAt(size.Servers)), y.at(m)})
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
func (r drawing) fits(mode string, servers int) bool {
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

// Where the rows of overTasks are.
const (
	rowsTop  = 112
	rowStep  = 22
	nameSide = 150
)

// overTasks has a row for each task, with a mark for each mode, in two panels: without a cache, and at rates like
// prices. Where code mode costs more than another mode the row is shaded, and the task's name is bold.
func (r drawing) overTasks(servers int) string {
	tasks := r.tasks(servers)
	bottom := float64(rowsTop + rowStep*len(tasks))
	s := newSVG(860, bottom+50, fmt.Sprintf("Tokens of each task with %s, in three modes", count(servers, "server")))
	s.text(20, 24, "start", `font-size="15" font-weight="600"`, fmt.Sprintf("Tokens of each task with %s, read and written", count(servers, "server")))
	legend(s, 30, 48)
	s.rect(25, 58, 11, 11, lossColor)
	s.text(42, 68, "start", "", "shaded, and its name bold: code mode costs more than another mode")
	panels := []weighing{plain(), priceWeighing()}
	for i, task := range tasks {
		style := ""
		for _, w := range panels {
			if r.lossOf(task, servers, w) {
				style = `font-weight="700"`
			}
		}
		s.text(nameSide-10, rowAt(i)+4, "end", style, task)
	}
	for i, w := range panels {
		left := nameSide + float64(i)*350
		r.taskPanel(s, around(r.all(tasks, servers, w), left+10, left+310), tasks, servers, w)
	}
	return s.String()
}

func rowAt(i int) float64 { return float64(rowsTop + rowStep*i + rowStep/2) }

// lossOf reports whether another mode costs less.
func (r drawing) lossOf(task string, servers int, w weighing) bool {
	winner := sections(r).cheapest(task, servers, Encoding, w)
	return winner != code && winner != ""
}

func (r drawing) taskPanel(s *svg, x scale, tasks []string, servers int, w weighing) {
	name := w.name
	if w == priceWeighing() {
		name = "like prices (cache, storing, output)"
	}
	s.text(x.from, rowsTop-16, "start", `font-weight="600"`, name)
	for i, task := range tasks {
		if r.lossOf(task, servers, w) {
			s.rect(x.from-8, rowAt(i)-rowStep/2, x.to-x.from+16, rowStep, lossColor)
		}
	}
	bottom := float64(rowsTop + rowStep*len(tasks))
	for _, v := range x.decades() {
		s.line(x.at(v), rowsTop-8, x.at(v), bottom, "#d0d7de", "")
		s.text(x.at(v), bottom+18, "middle", "", short(v))
	}
	s.text((x.from+x.to)/2, bottom+38, "middle", "", "tokens")
	for i, task := range tasks {
		r.rowOf(s, x, rowAt(i), task, servers, w)
	}
}

func (r drawing) all(tasks []string, servers int, w weighing) (values []float64) {
	for _, task := range tasks {
		for _, mode := range suite.Modes() {
			if l := r.of(task, string(mode), servers, Encoding); l != nil {
				values = append(values, l.WeightedCost(w.rates))
			}
		}
	}
	return values
}

func (r drawing) rowOf(s *svg, x scale, y float64, task string, servers int, w weighing) {
	s.line(x.from, y, x.to, y, "#eaeef2", "")
	for _, mode := range suite.Modes() {
		if l := r.of(task, string(mode), servers, Encoding); l != nil && l.Correct {
			s.mark(x.at(l.WeightedCost(w.rates)), y, string(mode), !l.Valid())
		}
	}
}
