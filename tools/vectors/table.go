package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
)

const (
	dim        = 96  // of the table's vectors; equals wordvec.Dim
	encoderDim = 512 // of the sentence encoder's vectors
	// rare is the parameter of smooth inverse frequency: words with a larger share of all text lose weight.
	rare = 1e-4
	// zipf converts the rank of a word to its share of all text.
	zipf = 1 / 11.0
)

// table has a row for each word. Its direction is the meaning, its length the weight.
type table struct {
	words []string
	at    map[string]int32
	rows  [][]float32
}

// readTable returns the initial table: the encoder's vectors minus their mean, projected
// to their principal components, and weighted by the rarity of the word.
func readTable(words, file string) (*table, error) {
	text, err := os.ReadFile(words)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	t := &table{words: strings.Fields(string(text)), at: map[string]int32{}}
	if len(data) != 4*encoderDim*len(t.words) {
		return nil, fmt.Errorf("%s has %d bytes, which does not match %d words", file, len(data), len(t.words))
	}
	for i, w := range t.words {
		row := make([]float32, encoderDim)
		for j := range row {
			row[j] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*(i*encoderDim+j):]))
		}
		t.at[w] = int32(i)
		t.rows = append(t.rows, scale(row, 1/norm(row)))
	}
	t.center()
	t.project()
	for i, row := range t.rows {
		scale(row, t.weight(i))
	}
	return t, nil
}

// weight returns the weight of the word with a rank.
func (t *table) weight(rank int) float32 {
	share := zipf / (float64(rank) + 2.7)
	return float32(rare / (rare + share))
}

// center subtracts the weighted mean from all rows.
func (t *table) center() {
	mean, sum := make([]float32, encoderDim), float32(0)
	for i, row := range t.rows {
		add(mean, row, t.weight(i))
		sum += t.weight(i)
	}
	for _, row := range t.rows {
		add(row, mean, -1/sum)
	}
}

// project projects the rows to their first dim principal components.
func (t *table) project() {
	axes := principal(t.rows, dim)
	for i, row := range t.rows {
		cut := make([]float32, dim)
		for j, axis := range axes {
			cut[j] = dot(row, axis)
		}
		t.rows[i] = cut
	}
}

// find returns the row of a word or of its base form, as wordvec's Model.Find does.
func (t *table) find(word string) (int32, bool) {
	if i, ok := t.at[word]; ok {
		return i, true
	}
	for _, ending := range [...]string{"s", "es", "ed", "d", "ing", "ly"} {
		if base, ok := strings.CutSuffix(word, ending); ok && len(base) > 2 {
			if i, ok := t.at[base]; ok {
				return i, true
			}
		}
	}
	return 0, false
}

// encode returns the format that wordvec.Load reads: magic, number of words, bytes of
// their texts, the sorted texts on a line each, a scale for each word, its row in units of the scale.
func (t *table) encode() []byte {
	var texts, scales, rows []byte
	for _, w := range slices.Sorted(slices.Values(t.words)) {
		row, most := t.rows[t.at[w]], float32(1e-9)
		for _, x := range row {
			most = max(most, x, -x)
		}
		scale := most / 127
		texts = append(texts, w+"\n"...)
		scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(scale))
		for _, x := range row {
			rows = append(rows, byte(int8(math.Round(float64(x/scale)))))
		}
	}
	data := []byte("words96\n")
	data = binary.LittleEndian.AppendUint32(data, uint32(len(t.words)))
	data = binary.LittleEndian.AppendUint32(data, uint32(len(texts)))
	return slices.Concat(data, texts, scales, rows)
}

func dot(a, b []float32) float32 {
	sum := float32(0)
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

func norm(a []float32) float32 { return float32(math.Sqrt(float64(dot(a, a)))) }

func scale(a []float32, by float32) []float32 {
	for i := range a {
		a[i] *= by
	}
	return a
}

// add adds by times b to a.
func add(a, b []float32, by float32) {
	for i, x := range b {
		a[i] += by * x
	}
}
