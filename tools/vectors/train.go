package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
)

const (
	// batchSize is the number of pairs per step: each text must be nearer to its own partner than to the others'.
	batchSize = 192
	// temperature is the temperature of the contrastive loss.
	temperature  = 0.07
	learningRate = 0.1
)

// pair is two texts with similar meanings, as rows of the table.
type pair struct{ a, b []int32 }

// trainer trains the rows. It is deterministic.
type trainer struct {
	*table
	// gradientSquares accumulates the mean squared gradient of each row, for Adagrad.
	gradientSquares []float32
	random          *rand.Rand
}

func newTrainer(t *table) *trainer {
	return &trainer{table: t, gradientSquares: make([]float32, len(t.rows)), random: rand.New(rand.NewPCG(3, 4))}
}

// round trains one epoch in random order and returns the mean loss.
func (t *trainer) round(pairs []pair) float64 {
	t.random.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	sum, n := 0.0, 0
	for ; len(pairs) >= batchSize; pairs = pairs[batchSize:] {
		sum += t.step(pairs[:batchSize])
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
	return text{rows, scale(v, 1/n), n, make([]float32, dim)}
}

// step trains one batch with the symmetric contrastive loss (InfoNCE).
func (t *trainer) step(pairs []pair) float64 {
	as, bs := make([]text, batchSize), make([]text, batchSize)
	for i, p := range pairs {
		as[i], bs[i] = t.text(p.a), t.text(p.b)
	}
	like, loss := likeness(as, bs)
	forEachInBatch(func(i int) {
		for j := range batchSize {
			add(as[i].gradient, bs[j].vector, like[i][j]/temperature)
			add(bs[i].gradient, as[j].vector, like[j][i]/temperature)
		}
	})
	t.move(append(as, bs...))
	return loss
}

// likeness returns the coefficient of each pair of texts in the gradient, and the loss.
func likeness(as, bs []text) ([][]float32, float64) {
	like := make([][]float32, batchSize)
	rows, columns := make([]float64, batchSize), make([]float64, batchSize)
	forEachInBatch(func(i int) {
		like[i] = make([]float32, batchSize)
		for j := range batchSize {
			like[i][j] = float32(math.Exp(float64(dot(as[i].vector, bs[j].vector)-1) / temperature))
			rows[i] += float64(like[i][j])
		}
	})
	loss := 0.0
	for i := range batchSize {
		for j := range batchSize {
			columns[j] += float64(like[i][j])
		}
	}
	for i := range batchSize {
		own := float64(like[i][i])
		loss -= (math.Log(own/rows[i]) + math.Log(own/columns[i])) / (2 * batchSize)
	}
	for i := range batchSize {
		for j := range batchSize {
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
		t.gradientSquares[i] += dot(gradient, gradient) / dim
		add(t.rows[i], gradient, -learningRate/(float32(math.Sqrt(float64(t.gradientSquares[i])))+1e-6))
	}
}

// forEachInBatch runs f for all indexes of a batch, on all cores.
func forEachInBatch(f func(i int)) {
	var work sync.WaitGroup
	cores := runtime.GOMAXPROCS(0)
	for c := range cores {
		work.Go(func() {
			for i := c; i < batchSize; i += cores {
				f(i)
			}
		})
	}
	work.Wait()
}
