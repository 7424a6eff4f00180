package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

const (
	// batch is the number of pairs per step: each text must be nearer to its own partner than to the others'.
	batch = 192
	// heat is the temperature of the contrastive loss.
	heat = 0.07
	rate = 0.1
)

// pair is two texts with similar meanings, as rows of the table.
type pair struct{ a, b []int32 }

// trainer trains the rows. It is deterministic.
type trainer struct {
	*table
	// moved accumulates the mean squared gradient of each row, for Adagrad.
	moved  []float32
	random *rand.Rand
}

func newTrainer(t *table) *trainer {
	return &trainer{table: t, moved: make([]float32, len(t.rows)), random: rand.New(rand.NewPCG(3, 4))}
}

// round trains one epoch in random order and returns the mean loss.
func (t *trainer) round(pairs []pair) float64 {
	t.random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	sum, n := 0.0, 0
	for ; len(pairs) >= batch; pairs = pairs[batch:] {
		sum += t.step(pairs[:batch])
		n++
	}
	return sum / float64(max(n, 1))
}

// text is one text of a batch: its normalized vector, the vector's original length, and its gradient.
type text struct {
	rows     []int32
	vector   []float32
	length   float32
	gradient []float32
}

func (t *trainer) text(rows []int32) text {
	v := make([]float32, dim)
	for _, i := range rows {
		add(v, t.rows[i], 1)
	}
	n := max(norm(v), 1e-9)
	return text{rows, scaled(v, 1/n), n, make([]float32, dim)}
}

// step trains one batch with the symmetric contrastive loss (InfoNCE).
func (t *trainer) step(pairs []pair) float64 {
	as, bs := make([]text, batch), make([]text, batch)
	for i, p := range pairs {
		as[i], bs[i] = t.text(p.a), t.text(p.b)
	}
	like, loss := likeness(as, bs)
	each(func(i int) {
		for j := range batch {
			add(as[i].gradient, bs[j].vector, like[i][j]/heat)
			add(bs[i].gradient, as[j].vector, like[j][i]/heat)
		}
	})
	t.move(append(as, bs...))
	return loss
}

// likeness returns the coefficient of each pair of texts in the gradient, and the loss.
func likeness(as, bs []text) ([][]float32, float64) {
	like := make([][]float32, batch)
	rows, columns := make([]float64, batch), make([]float64, batch)
	each(func(i int) {
		like[i] = make([]float32, batch)
		for j := range batch {
			like[i][j] = float32(math.Exp(float64(dot(as[i].vector, bs[j].vector)-1) / heat))
			rows[i] += float64(like[i][j])
		}
	})
	loss := 0.0
	for i := range batch {
		for j := range batch {
			columns[j] += float64(like[i][j])
		}
	}
	for i := range batch {
		own := float64(like[i][i])
		loss -= (math.Log(own/rows[i]) + math.Log(own/columns[i])) / (2 * batch)
	}
	for i := range batch {
		for j := range batch {
			like[i][j] = float32(float64(like[i][j])/rows[i] + float64(like[i][j])/columns[j])
		}
		like[i][i] -= 2
	}
	return like, loss
}

// move updates the rows of the texts by their gradients (Adagrad with a rate per row).
func (t *trainer) move(texts []text) {
	down := map[int32][]float32{}
	for _, x := range texts {
		add(x.gradient, x.vector, -dot(x.gradient, x.vector)) // keep the length of the text's vector
		for _, i := range x.rows {
			if down[i] == nil {
				down[i] = make([]float32, dim)
			}
			add(down[i], x.gradient, 1/x.length)
		}
	}
	for i, gradient := range down {
		t.moved[i] += dot(gradient, gradient) / dim
		add(t.rows[i], gradient, -rate/(float32(math.Sqrt(float64(t.moved[i])))+1e-6))
	}
}

// each runs f for all indexes of a batch, on all cores.
func each(f func(i int)) {
	var work sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for c := range cores {
		work.Go(func() {
			for i := c; i < batch; i += cores {
				f(i)
			}
		})
	}
	work.Wait()
}
