package names

import (
	"math/rand/v2"
	"slices"
)

// Example is a labelled text.
type Example struct {
	Text  string
	Spans []Span
}

// Lists are the words of the classes: given names, surnames, common words, cities, regions, kinds of roads, titles,
// other names; all in small letters.
type Lists [classes][]string

// Settings configure the training.
type Settings struct {
	Rounds int
	// Unlisted is the share of labelled words that are learned as if no list contained them.
	Unlisted float64
	// Lead is the margin by which the right tag has to win.
	Lead float32
	Seed uint64
}

// Train trains a model: an averaged perceptron over sequences. It is deterministic.
func Train(lists Lists, examples []Example, s Settings) *Model {
	m := &Model{scale: 1}
	for c, words := range lists {
		m.lists[c] = make(filter, (len(words)*10+7)/8+8)
		for _, w := range words {
			m.lists[c].add(hash(w))
		}
	}
	t := &trainer{
		model: m, settings: s, rand: rand.New(rand.NewPCG(s.Seed, 1)), //nolint:gosec // to be the same each time
		features: make([]averagedWeights, 1<<hashBits),
	}
	order := t.rand.Perm(len(examples))
	for range s.Rounds {
		t.rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, i := range order {
			t.learn(examples[i])
		}
	}
	t.finish()
	return m
}

// averagedWeights holds the weights of one feature: the current ones, and the sums for the average.
type averagedWeights struct {
	now [tags]float32
	sum [tags]float64
}

func (w *averagedWeights) change(right, wrong tag, step float64) {
	w.now[right]++
	w.sum[right] += step
	w.now[wrong]--
	w.sum[wrong] -= step
}

func (w *averagedWeights) mean(t int, steps float64) float32 {
	return w.now[t] - float32(w.sum[t]/steps)
}

type trainer struct {
	model       *Model
	settings    Settings
	rand        *rand.Rand
	features    []averagedWeights
	transitions [tags]averagedWeights
	steps       float64
}

func (t *trainer) learn(e Example) {
	list := tokens(e.Text, nil)
	ws := t.model.words(e.Text, list)
	want := labels(list, e.Spans)
	for i := range ws { // what no list has is learned by what is around it
		if want[i] != outside && t.rand.Float64() < t.settings.Unlisted {
			ws[i].in &^= givenName | surname | city
			ws[i].digest = t.rand.Uint64()
		}
	}
	got := t.guess(ws, want)
	t.steps++
	var room [maxFeatures]uint32
	for i := range ws {
		if got[i] != want[i] {
			for _, f := range features(ws, i, room[:0]) {
				t.features[f].change(want[i], got[i], t.steps)
			}
		}
		if i > 0 && (got[i] != want[i] || got[i-1] != want[i-1]) {
			t.adjustTransition(want[i-1], want[i], 1)
			t.adjustTransition(got[i-1], got[i], -1)
		}
	}
}

func (t *trainer) adjustTransition(from, to tag, by float32) {
	t.transitions[from].now[to] += by
	t.transitions[from].sum[to] += float64(by) * t.steps
}

// guess returns the model's tags when wrong tags get the margin as a bonus.
func (t *trainer) guess(ws []word, want []tag) []tag {
	scores := make([][tags]float32, len(ws))
	var room [maxFeatures]uint32
	for i := range ws {
		for _, f := range features(ws, i, room[:0]) {
			for k, v := range t.features[f].now {
				scores[i][k] += v
			}
		}
		for k := range scores[i] {
			if tag(k) != want[i] { //nolint:gosec // under tags
				scores[i][k] += t.settings.Lead
			}
		}
	}
	var moves [tags][tags]float32
	for k := range t.transitions {
		moves[k] = t.transitions[k].now
	}
	return best(scores, &moves)
}

// labels returns the correct tags.
func labels(list []token, spans []Span) []tag {
	want := make([]tag, len(list))
	for i, tok := range list {
		for _, s := range spans {
			if tok.start >= s.Start && tok.end <= s.End {
				want[i] = tag(slices.Index(sorts[:], s.Sort)) //nolint:gosec // one of them
			}
		}
	}
	return want
}

// finish stores the averaged weights in the model, rounded to one byte.
func (t *trainer) finish() {
	largest := float32(0)
	for f := range t.features {
		for k := range tags {
			largest = max(largest, t.features[f].mean(k, t.steps), -t.features[f].mean(k, t.steps))
		}
	}
	t.model.scale = max(largest/127, 1e-6)
	t.model.features = make([]weights, len(t.features))
	for f := range t.features {
		for k := range tags {
			v := t.features[f].mean(k, t.steps) / t.model.scale
			if v < 0 {
				v -= 0.5
			} else {
				v += 0.5
			}
			t.model.features[f][k] = int8(v)
		}
	}
	for p := range tags {
		for k := range tags {
			t.model.transitions[p][k] = t.transitions[p].mean(k, t.steps)
		}
	}
}
